#include "serve/chat_messages.h"

#include <utility>

#include "failure.h"
#include "reply/json_input.h"
#include "serve/api_error.h"
#include "serve/fields.h"

namespace cli {
namespace {

constexpr size_t kMostMessages = 65536;

/// Blanks around a reply get lost on the way through many clients.
std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const size_t last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::string partText(const Json& part, const std::string& path) {
  const Fields fields(part, path);
  const Json& type = fields.need("type", "\"text\"");
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  if (name == "text" || name == "input_text" || name == "output_text" || name == "refusal") {
    const char* const key = name == "refusal" ? "refusal" : "text";
    const Json& text = fields.need(key, "a text");
    if (!text.is_string()) {
      throw wrongField(fields.nameOf(key), "a text");
    }
    return text.get<std::string>();
  }
  if (name == "thinking" || name == "reasoning") {
    return "";  // thoughts of another turn
  }
  if (!type.is_string()) {
    throw wrongField(fields.nameOf("type"), "a text");
  }
  throw ApiError{
      400, path + " is of the type " + name + ", and the model reads text only: send text parts",
      path, "unsupported_content", 0};
}

/// nullopt: null, or none.
std::optional<std::string> contentOf(const Fields& fields) {
  const Json* const content = fields.find("content");
  if (content == nullptr) {
    return std::nullopt;
  }
  const std::string path = fields.nameOf("content");
  if (content->is_string()) {
    return content->get<std::string>();
  }
  if (!content->is_array()) {
    throw wrongField(path, "a text or a list of parts");
  }
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    text += partText((*content)[i], path + "[" + std::to_string(i) + "]");
  }
  return text;
}

/// As clients keep them: an object, its text, or any other text of a model. A text has the bounds of the JSON around it.
std::string argumentsOf(const Json* value) {
  if (value == nullptr || value->is_null()) {
    return "{}";
  }
  if (!value->is_string()) {
    return dumped(*value);
  }
  const std::string text = value->get<std::string>();
  try {
    const Json parsed = parseJson(text, "the arguments", kMostBodyValues);
    return parsed.is_null() ? "{}" : dumped(parsed);
  } catch (const Failure&) {
    return trimmed(text).empty() ? "{}" : text;
  }
}

Json callOf(const Json& value, const std::string& path) {
  const Fields call(value, path);
  const Json& function = call.need("function", "the function that was called");
  const Fields fields(function, call.nameOf("function"));
  const std::string name = fields.text("name").value_or("");
  if (name.empty()) {
    throw wrongField(fields.nameOf("name"), "the name of a function");
  }
  Json result;
  result["id"] = call.text("id").value_or("");
  result["type"] = "function";
  result["function"]["name"] = name;
  result["function"]["arguments"] = argumentsOf(fields.find("arguments"));
  return result;
}

Json callsOf(const Fields& fields) {
  const Json* const value = fields.find("tool_calls");
  Json calls = Json::array();
  if (value == nullptr) {
    return calls;
  }
  if (!value->is_array()) {
    throw wrongField(fields.nameOf("tool_calls"), "a list");
  }
  for (size_t i = 0; i < value->size(); ++i) {
    calls.push_back(
        callOf((*value)[i], fields.nameOf("tool_calls") + "[" + std::to_string(i) + "]"));
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

ChatMessage plainMessage(const std::string& role, const std::string& text) {
  ChatMessage message;
  Json json;
  json["role"] = role;
  json["content"] = text;
  message.json = dumped(json);
  message.key = message.json;
  message.is_user = role == "user";
  return message;
}

ChatMessage assistantMessage(const Fields& fields, const std::optional<std::string>& text) {
  const Json calls = callsOf(fields);
  Json json;
  json["role"] = "assistant";
  json["content"] = text || calls.empty() ? Json(text.value_or("")) : Json();
  if (!calls.empty()) {
    json["tool_calls"] = calls;
  }
  const std::optional<std::string> thought = fields.text("reasoning_content");
  if (thought) {
    json["reasoning_content"] = *thought;
  }
  return {dumped(json), assistantKey(text.value_or(""), calls), false};
}

ChatMessage toolMessage(const Fields& fields, const std::string& text) {
  Json json;
  json["role"] = "tool";
  json["content"] = text;
  json["tool_call_id"] = fields.text("tool_call_id").value_or("");
  const std::optional<std::string> name = fields.text("name");
  if (name) {
    json["name"] = *name;
  }
  ChatMessage message;
  message.json = message.key = dumped(json);
  return message;
}

ChatMessage messageOf(const Json& value, const std::string& path) {
  const Fields fields(value, path);
  const std::string role = roleOf(fields);
  const std::optional<std::string> text = contentOf(fields);
  if (role == "assistant") {
    return assistantMessage(fields, text);
  }
  if (role == "tool") {
    return toolMessage(fields, text.value_or(""));
  }
  if (!text) {
    throw wrongField(fields.nameOf("content"), "a text or a list of parts");
  }
  return plainMessage(role, *text);
}

}  // namespace

std::string assistantKey(const std::string& text, const Json& tool_calls) {
  Json key;
  key["assistant"] = trimmed(text);
  key["calls"] = Json::array();
  for (const Json& call : tool_calls) {
    const Json& function = call["function"];
    // Without ids, and with the names of arguments in one order.
    const std::string given = function["arguments"].get<std::string>();
    const auto arguments = nlohmann::json::parse(given, nullptr, false);
    key["calls"].push_back(
        {function["name"],
         arguments.is_discarded()
             ? given
             : arguments.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
  }
  return dumped(key);
}

std::string systemKey(const std::string& text) { return plainMessage("system", text).key; }

std::vector<ChatMessage> readChatMessages(const Json& list) {
  if (!list.is_array() || list.empty() || list.size() > kMostMessages) {
    throw wrongField("messages", "a list of at least one message");
  }
  std::vector<ChatMessage> messages;
  messages.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    messages.push_back(messageOf(list[i], "messages[" + std::to_string(i) + "]"));
  }
  return messages;
}

}  // namespace cli
