// What replies mean, and what they have to be.
#include "api/session_call.h"

using namespace oriel;

oriel_status oriel_chat_add_json(oriel_session* session, const char* json, size_t bytes) {
  if (session == nullptr || (json == nullptr && bytes != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return callAlone(session, [&] { return session->session->chatAddJson(json, bytes); });
}

oriel_status oriel_parse_reply(const oriel_model* model, const oriel_chat_options*, int,
                               const char*, size_t, oriel_part_fn, void*) {
  if (model == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return model->log.fail(ORIEL_ERROR_UNSUPPORTED, "not built yet: wait").code();
}
