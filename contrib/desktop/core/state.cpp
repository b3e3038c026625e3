#include "state.h"

#include <algorithm>

#include "chat/conversations.h"
#include "visual_line.h"

namespace desktop {
namespace {

using cli::Json;

/// Files of the parts {"type": "image", "path"}.
std::vector<std::string> picturesOf(const Json& message) {
  std::vector<std::string> pictures;
  const auto content = message.find("content");
  for (const Json& part :
       content != message.end() && content->is_array() ? *content : Json::array()) {
    if (part.is_object() && part.contains("path") && part["path"].is_string()) {
      pictures.push_back(part["path"]);
    }
  }
  return pictures;
}

}  // namespace

const ChatState* AppState::chat(int id) const {
  const auto found =
      std::find_if(chats.begin(), chats.end(), [id](const ChatState& c) { return c.id == id; });
  return found == chats.end() ? nullptr : &*found;
}

std::string titleOf(const std::vector<Message>& messages) {
  constexpr size_t kCharacters = 18;
  for (const Message& message : messages) {
    if (message.from_user) {
      std::string line = message.text.substr(0, message.text.find('\n'));
      const size_t end = utf8::offsetOf(line, kCharacters);
      return end < line.size() ? line.substr(0, end) + "..." : line;
    }
  }
  return "New chat";
}

std::string messagesToJson(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back(message.from_user ? cli::userMessage(message.text, message.pictures)
                                     : Json{{"role", "assistant"}, {"content", message.text}});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool messagesFromJson(const std::string& json, std::vector<Message>* messages) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array()) {
    return false;
  }
  messages->clear();
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("role") || !item["role"].is_string()) {
      return false;
    }
    const std::string role = item["role"];
    if (role == "user" || role == "assistant") {
      messages->push_back({role == "user", cli::textOfMessage(item), picturesOf(item)});
    }
  }
  return true;
}

}  // namespace desktop
