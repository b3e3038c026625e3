#include "serve/message.h"

#include <utility>

#include "failure.h"
#include "pictures/message_pictures.h"
#include "reply/json_input.h"
#include "serve/api_error.h"
#include "serve/tool_list.h"

namespace cli {
namespace {

/// Many clients drop white space around a reply.
std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const size_t last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// Part types and their text fields. Null: a thought, which is ignored.
const char* const kPartTypes[][2] = {
    {"text", "text"},       {"input_text", "text"},   {"output_text", "text"},
    {"refusal", "refusal"}, {"thinking", nullptr},    {"redacted_thinking", nullptr},
    {"reasoning", nullptr}, {"summary_text", "text"}, {"reasoning_text", "text"},
};

/// Calls are compared without ids, with sorted arguments.
std::string comparable(const std::string& arguments) {
  const auto parsed = nlohmann::json::parse(arguments, nullptr, false);
  return parsed.is_discarded()
             ? arguments
             : parsed.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

}  // namespace

std::string partText(const Json& part, const std::string& path) {
  const Fields fields(part, path);
  const Json& type = fields.need("type", "\"text\"");
  if (!type.is_string()) {
    throw wrongField(fields.nameOf("type"), "a text");
  }
  const std::string name = type.get<std::string>();
  for (const auto& [known, field] : kPartTypes) {
    if (name != known) {
      continue;
    }
    if (field == nullptr) {
      return "";
    }
    const Json& text = fields.need(field, "a text");
    if (!text.is_string()) {
      throw wrongField(fields.nameOf(field), "a text");
    }
    return text.get<std::string>();
  }
  throw ApiError{
      400, path + " is of the type " + name + ", and the model reads text only: send text parts",
      path, "unsupported_content", 0};
}

std::optional<std::string> readContent(const Fields& fields, const char* name) {
  const Json* const content = fields.find(name);
  if (content == nullptr) {
    return std::nullopt;
  }
  const std::string path = fields.nameOf(name);
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

std::optional<ChatMessage> readUserMessage(const Fields& fields, const char* name) {
  const Json* const content = fields.find(name);
  Json parts = Json::array();
  bool has_pictures = false;
  for (size_t i = 0; content != nullptr && content->is_array() && i < content->size(); ++i) {
    const std::string path = fields.nameOf(name) + "[" + std::to_string(i) + "]";
    const std::string url = pictureUrl((*content)[i]);
    if (url.empty()) {
      parts.push_back({{"type", "text"}, {"text", partText((*content)[i], path)}});
      continue;
    }
    if (url.compare(0, 5, "data:") != 0) {
      throw ApiError{400,
                     path +
                         " has a picture's address, and this server opens no addresses: send "
                         "the picture as data:image/png;base64,...",
                     path, "unsupported_content", 0};
    }
    has_pictures = true;
    parts.push_back({{"type", "image_url"}, {"image_url", {{"url", url}}}});
  }
  if (!has_pictures) {
    const std::optional<std::string> text = readContent(fields, name);
    return text ? std::optional<ChatMessage>(plainMessage("user", *text)) : std::nullopt;
  }
  ChatMessage message;
  message.json = message.key = dumped(Json{{"role", "user"}, {"content", parts}});
  message.is_user = message.has_pictures = true;
  return message;
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

/// JSON inside a text has the limits of the JSON around it.
std::string pastArguments(const Json* value) {
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

ChatMessage assistantMessage(const std::optional<std::string>& text, const std::string& thought,
                             const std::vector<PastCall>& calls) {
  Json json;
  json["role"] = "assistant";
  json["content"] = text || calls.empty() ? Json(text.value_or("")) : Json();
  for (const PastCall& call : calls) {
    Json one;
    one["id"] = call.id;
    one["type"] = "function";
    one["function"]["name"] = call.name;
    one["function"]["arguments"] = call.arguments;
    json["tool_calls"].push_back(std::move(one));
  }
  if (!thought.empty()) {
    json["reasoning_content"] = thought;
  }
  return {dumped(json), assistantKey(text.value_or(""), calls), false};
}

ChatMessage resultMessage(const std::string& call_id, const std::string& name,
                          const std::string& text) {
  Json json;
  json["role"] = "tool";
  json["content"] = text;
  json["tool_call_id"] = call_id;
  if (!name.empty()) {
    json["name"] = name;
  }
  ChatMessage message;
  message.json = message.key = dumped(json);
  return message;
}

std::string assistantKey(const std::string& text, const std::vector<PastCall>& calls) {
  Json key;
  key["assistant"] = trimmed(text);
  key["calls"] = Json::array();
  for (const PastCall& call : calls) {
    key["calls"].push_back({call.name, comparable(call.arguments)});
  }
  return dumped(key);
}

std::string systemKey(const std::string& text) { return plainMessage("system", text).key; }

}  // namespace cli
