#include "reply/messages.h"

#include <filesystem>

#include "output.h"
#include "reply/json_input.h"

namespace cli {

Json messagesFrom(Json json, const std::string& what) {
  const Failure malformed{kExitFailed, what +
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

std::string folderOf(const std::string& path) {
  return path == "-" ? "" : std::filesystem::u8path(path).parent_path().u8string();
}

Json readMessages(const std::string& path) { return messagesFrom(readJson(path), inputName(path)); }

std::string messagesText(const Json& messages) {
  try {
    return messages.dump();
  } catch (const Json::type_error&) {
    throw Failure{kExitFailed, "the prompt is not valid UTF-8: convert it first"};
  }
}

}  // namespace cli
