#include "serve/openai/chat_messages.h"

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/tool_list.h"

namespace cli {
namespace {

constexpr size_t kMostMessages = 65536;

std::string nameOfFunction(const Fields& function) {
  const std::string name = function.text("name").value_or("");
  if (name.empty()) {
    throw wrongField(function.nameOf("name"), "the name of a function");
  }
  return name;
}

PastCall readPastCall(const Json& value, const std::string& path) {
  const Fields call(value, path);
  PastCall result;
  result.id = call.text("id").value_or("");
  if (call.find("custom") != nullptr) {
    const Fields custom(*call.find("custom"), call.nameOf("custom"));
    result.name = nameOfFunction(custom);
    result.arguments = textToolArguments(custom.text("input").value_or(""));
    return result;
  }
  const Fields function(call.need("function", "the function that was called"),
                        call.nameOf("function"));
  result.name = nameOfFunction(function);
  result.arguments = pastArguments(function.find("arguments"));
  return result;
}

std::vector<PastCall> readPastCalls(const Fields& fields) {
  const Json* const value = fields.find("tool_calls");
  std::vector<PastCall> calls;
  if (value != nullptr && !value->is_array()) {
    throw wrongField(fields.nameOf("tool_calls"), "a list");
  }
  for (size_t i = 0; value != nullptr && i < value->size(); ++i) {
    calls.push_back(
        readPastCall((*value)[i], fields.nameOf("tool_calls") + "[" + std::to_string(i) + "]"));
  }
  return calls;
}

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
