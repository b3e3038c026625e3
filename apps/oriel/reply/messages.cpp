#include "reply/messages.h"

#include "failure.h"
#include "reply/json_input.h"

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
  try {
    return messages.dump();
  } catch (const Json::type_error&) {
    throw Failure{kExitFailed, "the prompt is not valid UTF-8: convert it first"};
  }
}

}  // namespace cli
