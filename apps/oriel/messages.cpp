#include "messages.h"

#include "failure.h"
#include "json_input.h"

namespace cli {

Json readMessages(const std::string& path) {
  Json json = readJson(path);
  const Failure malformed{kExitFailed, inputName(path) +
                                           " is not a conversation: write "
                                           R"([{"role": "user", "content": "Hello"}])"};
  if (!json.is_array()) {
    throw malformed;
  }
  for (const Json& message : json) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      throw malformed;
    }
  }
  return json;
}

std::string messagesText(const Json& messages) {
  return messages.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cli
