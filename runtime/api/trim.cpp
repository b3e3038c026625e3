#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_trim(oriel_model*, oriel_trim_level, const char*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_resume(oriel_model*, oriel_progress_fn, void*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_pause(oriel_model*) { return ORIEL_ERROR_UNSUPPORTED; }
oriel_status oriel_model_get_resident(const oriel_model*, oriel_resident*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
