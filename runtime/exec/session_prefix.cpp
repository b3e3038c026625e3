// The part of a session that begins behind a prefix.
#include "exec/session.h"

namespace oriel {

// The prefix ends like the assistant's turn, what closes it included: a message may follow. Its ids are not known.
Status Session::standBehindPrefix(uint64_t tokens) {
  if (tokens > cache_.sinks) {
    return context_.log.fail(ORIEL_ERROR_CONTEXT,
                             "the prefix has %llu tokens and there is room for %u: give it more",
                             static_cast<unsigned long long>(tokens), cache_.sinks);
  }
  if (states_ != nullptr || first_position_ != 0) {
    return context_.log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "a prefix from a file stands at position 0, in models without states: "
                             "let the session begin there");
  }
  forgetOnHost();
  blank_ = tokens == 0;
  position_ = stored_ = tokens;
  last_message_ = tokens == 0 ? LastMessage::kNothing : LastMessage::kAssistant;
  closed_ = tokens != 0;
  return kOk;
}

}  // namespace oriel
