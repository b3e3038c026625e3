#include "messages.h"

#include "failure.h"
#include "json_input.h"
#include "output.h"

namespace cli {

std::vector<Message> readMessages(const std::string& path) {
  const Json json = readJson(path);
  const Failure malformed{kExitFailed, inputName(path) +
                                           " is not a conversation: write "
                                           R"([{"role": "user", "content": "Hello"}])"};
  if (!json.is_array()) {
    throw malformed;
  }
  std::vector<Message> messages;
  for (const Json& item : json) {
    if (!item.is_object() || !item.contains("role") || !item["role"].is_string() ||
        !item.contains("content") || !item["content"].is_string()) {
      throw malformed;
    }
    messages.push_back({item["role"].get<std::string>(), item["content"].get<std::string>()});
    if (messages.back().role.find('\0') != std::string::npos) {  // C would see less of it
      throw malformed;
    }
  }
  return messages;
}

}  // namespace cli
