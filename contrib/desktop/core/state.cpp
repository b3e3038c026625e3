#include "state.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "utf8.h"

namespace desktop {

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
  nlohmann::json list = nlohmann::json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", message.from_user ? "user" : "assistant"}, {"content", message.text}});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool messagesFromJson(const std::string& json, std::vector<Message>* messages) {
  const nlohmann::json list = nlohmann::json::parse(json, nullptr, false);
  if (!list.is_array()) {
    return false;
  }
  messages->clear();
  for (const nlohmann::json& item : list) {
    if (!item.is_object() || !item.contains("role") || !item["role"].is_string()) {
      return false;
    }
    const std::string role = item["role"];
    if (role == "user" || role == "assistant") {
      const bool has_text = item.contains("content") && item["content"].is_string();
      messages->push_back({role == "user", has_text ? std::string(item["content"]) : ""});
    }
  }
  return true;
}

}  // namespace desktop
