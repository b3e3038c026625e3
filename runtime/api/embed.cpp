// Texts as vectors.
#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_embed(oriel_session* session, const oriel_embed_options*, const char*, size_t,
                         float*, size_t, size_t* needed, uint32_t*) {
  if (session == nullptr || needed == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return session->model->log.fail(ORIEL_ERROR_UNSUPPORTED, "not built yet: wait").code();
}
