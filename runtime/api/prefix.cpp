#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_prefix_set(oriel_session*) { return ORIEL_ERROR_UNSUPPORTED; }
oriel_status oriel_prefix_clear(oriel_model*) { return ORIEL_ERROR_UNSUPPORTED; }
oriel_status oriel_prefix_get_info(const oriel_model*, oriel_prefix_info*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
