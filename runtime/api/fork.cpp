#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_session_fork(oriel_session*, oriel_session**) { return ORIEL_ERROR_UNSUPPORTED; }
oriel_status oriel_session_mark(oriel_session*, const char*) { return ORIEL_ERROR_UNSUPPORTED; }
oriel_status oriel_session_get_marks(const oriel_session*, oriel_mark*, size_t, size_t*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_session_return(oriel_session*, const char*, uint32_t) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_session_rewind_turns(oriel_session*, uint32_t, uint32_t) {
  return ORIEL_ERROR_UNSUPPORTED;
}
