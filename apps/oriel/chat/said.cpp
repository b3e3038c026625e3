#include "chat/said.h"

#include <algorithm>
#include <utility>

#include "pictures/message_pictures.h"

namespace cli {

void Said::add(std::vector<Json> messages) { turns_.push_back(std::move(messages)); }

void Said::takeBack(size_t turns) { turns_.resize(turns_.size() - std::min(turns, turns_.size())); }

void Said::goBack(const std::string& name) {
  const auto found = marks_.find(name);
  if (found == marks_.end()) {
    loseTrack();  // from before a file was loaded
    return;
  }
  turns_.resize(std::min(turns_.size(), found->second));
}

void Said::take(const Json& messages) {
  clear();
  for (const Json& message : messages) {
    const std::string role = message.value("role", "");
    if (role == "user") {
      turns_.emplace_back();
    }
    if (role != "system" && !turns_.empty()) {
      turns_.back().push_back(message);
    }
  }
}

Json Said::lastMessage() const { return turns_.empty() ? Json() : turns_.back().front(); }

std::string Said::lastReply() const {
  const Json* const last =
      turns_.empty() || turns_.back().empty() ? nullptr : &turns_.back().back();
  return last != nullptr && last->value("role", "") == "assistant" ? last->value("content", "")
                                                                   : "";
}

Json Said::messages() const {
  Json list = Json::array();
  for (const std::vector<Json>& turn : turns_) {
    for (const Json& message : turn) {
      list.push_back(message);
    }
  }
  return list;
}

Json userMessage(const std::string& text, const std::vector<std::string>& images) {
  Json content = text;
  if (!images.empty()) {
    content = Json::array();
    for (const std::string& image : images) {
      content.push_back(MessagePictures::part(image));
    }
    Json& last = content.emplace_back();
    last["type"] = "text";
    last["text"] = text;
  }
  Json message;
  message["role"] = "user";
  message["content"] = std::move(content);
  return message;
}

std::string textOfMessage(const Json& message) {
  if (!message.is_object() || !message.contains("content")) {
    return "";
  }
  const Json& content = message["content"];
  std::string text = content.is_string() ? content.get<std::string>() : "";
  for (const Json& part : content.is_array() ? content : Json::array()) {
    text += part.is_object() ? part.value("text", "") : "";
  }
  return text;
}

Json replyMessage(const ReplyParts& parts) {
  Json message = {{"role", "assistant"}, {"content", parts.text}};
  for (const ToolCall& call : parts.completeCalls()) {
    message["tool_calls"].push_back({{"type", "function"}, {"function", callJson(call)}});
  }
  return message;
}

}  // namespace cli
