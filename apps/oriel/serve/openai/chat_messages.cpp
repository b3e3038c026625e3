#include "serve/openai/chat_messages.h"

#include "serve/api_error.h"
#include "serve/message.h"

namespace cli {
namespace {

std::string roleOf(const Fields& fields) {
  const Json& value = fields.need("role", "system, user, assistant or tool");
  std::string role = value.is_string() ? value.get<std::string>() : "";
  for (const char* known : {"system", "user", "assistant", "tool"}) {
    if (role == known) {
      return role;
    }
  }
  if (role == "developer" || role == "function") {
    return role == "function" ? "tool" : "system";
  }
  throw wrongField(fields.nameOf("role"), "system, developer, user, assistant or tool");
}

ChatMessage readMessage(const Json& value, const std::string& path) {
  const Fields fields(value, path);
  const std::string role = roleOf(fields);
  if (role == "user") {
    if (const auto message = readUserMessage(fields, "content"); message) {
      return *message;
    }
  }
  const std::optional<std::string> text = readContent(fields, "content");
  if (role == "assistant") {
    return assistantMessage(text, fields.text("reasoning_content").value_or(""),
                            readPastCalls(fields));
  }
  if (role == "tool") {
    return resultMessage(fields.text("tool_call_id").value_or(""), fields.text("name").value_or(""),
                         text.value_or(""));
  }
  if (!text) {
    throw wrongField(fields.nameOf("content"), "a text or a list of parts");
  }
  return plainMessage(role, *text);
}

}  // namespace

std::vector<ChatMessage> readChatMessages(const Json& list) {
  if (!list.is_array() || list.empty() || list.size() > kMostMessages) {
    throw wrongField("messages", "a list of at least one message");
  }
  std::vector<ChatMessage> messages;
  messages.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    messages.push_back(readMessage(list[i], "messages[" + std::to_string(i) + "]"));
  }
  return messages;
}

}  // namespace cli
