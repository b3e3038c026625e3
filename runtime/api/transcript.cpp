#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_transcript_get_info(const oriel_session*, oriel_transcript_info*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_transcript_export(const oriel_session*, char*, size_t, size_t*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_transcript_import(oriel_session*, const char*, size_t) {
  return ORIEL_ERROR_UNSUPPORTED;
}
