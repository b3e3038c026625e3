#include "serve/message.h"

#include <algorithm>
#include <utility>

#include "output.h"
#include "pictures/message_pictures.h"
#include "reply/json_input.h"
#include "serve/api_error.h"

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
std::string comparable(const Json& value) {
  const char* separator = "";
  std::string text;
  if (value.is_object()) {
    using Member = Json::object_t::value_type;
    std::vector<const Member*> members;
    for (const Member& member : value.get_ref<const Json::object_t&>()) {
      members.push_back(&member);
    }
    std::sort(members.begin(), members.end(),
              [](const Member* a, const Member* b) { return a->first < b->first; });
    for (const Member* const member : members) {
      text += separator + dumped(member->first) + ":" + comparable(member->second);
      separator = ",";
    }
    return "{" + text + "}";
  }
  if (value.is_array()) {
    for (const Json& item : value) {
      text += separator + comparable(item);
      separator = ",";
    }
    return "[" + text + "]";
  }
  return dumped(value);
}

std::string comparable(const std::string& arguments) {
  try {
    return comparable(parseJson(arguments, ""));
  } catch (const Failure&) {
    return arguments;
  }
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
  throw ApiError{400,
                 path + " is of the type " + name +
                     ", which is not read here: send text, and pictures in the user's messages",
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

void UserMessage::add(const Json& part, const std::string& path) {
  const Fields fields(part, path);
  const Json* const type = fields.find("type");
  if (type == nullptr || (*type != "image_url" && *type != "input_image" && *type != "image")) {
    addText(partText(part, path));
    return;
  }
  if (const Json* const given = fields.find("source"); given != nullptr) {  // Anthropic's form
    const Fields source(*given, fields.nameOf("source"));
    if (source.text("type") == "base64") {
      const std::string kind = source.text("media_type").value_or("");
      if (kind != "image/png" && kind != "image/jpeg" && kind != "image/jpg") {
        throw wrongField(source.nameOf("media_type"), "image/png or image/jpeg");
      }
      addPicture(source.text("data").value_or(""), source.nameOf("data"));
      return;
    }
  }
  const std::string url = pictureUrl(part);
  if (url.compare(0, 5, "data:") != 0) {
    throw ApiError{400,
                   path +
                       " has no picture in it, and this server opens no addresses and files: send "
                       "the picture in base64, as data:image/png;base64,...",
                   path, "unsupported_content", 0};
  }
  addPicture(url, path);
}

void UserMessage::addText(const std::string& text) {
  Json& part = parts_.emplace_back();
  part["type"] = "text";
  part["text"] = text;
  text_ += text;
}

void UserMessage::addPicture(const std::string& data, const std::string& path) {
  if (data.empty()) {
    throw wrongField(path, "a picture in base64");
  }
  Json& part = parts_.emplace_back();
  part["type"] = "image_url";
  part["image_url"] = data.compare(0, 5, "data:") == 0 ? data : "data:;base64," + data;
  has_pictures_ = true;
}

ChatMessage UserMessage::take() {
  ChatMessage message = plainMessage("user", text_);
  if (has_pictures_) {
    Json json;
    json["role"] = "user";
    json["content"] = std::move(parts_);
    message.json = message.key = dumped(json);
    message.has_pictures = true;
  }
  *this = UserMessage();
  return message;
}

std::optional<ChatMessage> readUserMessage(const Fields& fields, const char* name) {
  const Json* const content = fields.find(name);
  if (content == nullptr || !content->is_array()) {
    const std::optional<std::string> text = readContent(fields, name);
    return text ? std::optional<ChatMessage>(plainMessage("user", *text)) : std::nullopt;
  }
  UserMessage message;
  for (size_t i = 0; i < content->size(); ++i) {
    message.add((*content)[i], fields.nameOf(name) + "[" + std::to_string(i) + "]");
  }
  return message.take();
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

namespace {

constexpr size_t kMostTools = 128;
constexpr char kInput[] = "input";

}  // namespace

void ToolList::checkName(const std::string& path, const std::string& name) const {
  if (tools_.size() >= kMostTools) {
    throw wrongField("tools", "a list of at most 128 tools");
  }
  const bool sound =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
      });
  if (!sound) {
    throw wrongField(path + ".name", "1 to 64 letters, digits, _, - and dots");
  }
}

void ToolList::add(const std::string& path, const std::string& name, const Json& tool) {
  checkName(path, name);
  tools_.push_back(tool);
  names_.push_back(name);
}

void ToolList::addText(const std::string& path, const std::string& name,
                       const std::string& description, const Json& schema) {
  Json parameters;
  parameters["type"] = "object";
  parameters["properties"][kInput] = schema;
  parameters["required"] = Json::array({kInput});
  parameters["additionalProperties"] = false;
  add(path, name, functionTool(name, description, parameters, /*strict=*/true, path));
  text_tools_.push_back(name);
}

void ToolList::keepOnly(const std::vector<std::string>& names, const std::string& param) {
  Json kept = Json::array();
  for (const std::string& name : names) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      throw wrongField(param, "the name of one of the tools");
    }
    kept.push_back(tools_[static_cast<size_t>(found - names_.begin())]);
  }
  tools_ = std::move(kept);
  names_ = names;
}

void ToolList::choose(CallChoice choice, const std::string& param, ReplyRequest* request) {
  if (choice == CallChoice::kRequired && tools_.empty()) {
    throw ApiError{400, param + " requires a call, but no tools are given: give tools", param,
                   "invalid_value", 0};
  }
  if (choice == CallChoice::kNone || tools_.empty()) {
    request->tool_choice = "none";  // the model cannot call tools that it does not know
    return;
  }
  request->tool_choice = choice == CallChoice::kRequired ? "required" : "checked";
  request->form.tools = dumped(tools_);
  request->text_tools = text_tools_;
}

Json functionTool(const std::string& name, const std::string& description, const Json& parameters,
                  bool strict, const std::string& path) {
  if (!parameters.is_null() && !parameters.is_object()) {
    throw wrongField(path, "a JSON schema, an object");
  }
  Json tool;
  tool["type"] = "function";
  Json& function = tool["function"];
  function["name"] = name;
  if (!description.empty()) {
    function["description"] = description;
  }
  if (!parameters.is_null()) {
    function["parameters"] = parameters;
  }
  if (strict) {
    function["strict"] = true;
  }
  return tool;
}

std::string textToolArguments(const std::string& input) { return dumped(Json{{kInput, input}}); }

std::string textToolInput(const std::string& arguments) {
  const Json parsed = tryJson(arguments);
  const bool holds = parsed.is_object() && parsed.contains(kInput) && parsed[kInput].is_string();
  return holds ? parsed[kInput].get<std::string>() : arguments;
}

}  // namespace cli
