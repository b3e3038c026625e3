#include "oriel/sessions.h"

#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_snapshot_inspect(const void*, size_t, oriel_log_fn, void*,
                                    oriel_snapshot_info*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_snapshot_inspect_file(const char*, oriel_log_fn, void*, oriel_snapshot_info*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_session_restore_as(oriel_session*, const void*, size_t, uint32_t,
                                      oriel_restored*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_session_restore_file_as(oriel_session*, const char*, uint32_t, oriel_restored*) {
  return ORIEL_ERROR_UNSUPPORTED;
}
oriel_status oriel_session_save_file_as(oriel_session*, const char*, uint32_t) {
  return ORIEL_ERROR_UNSUPPORTED;
}
