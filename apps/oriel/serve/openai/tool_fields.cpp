#include "serve/openai/tool_fields.h"

#include "serve/api_error.h"
#include "serve/tool_list.h"

namespace cli {
namespace {

/// The object with a tool's or a choice's own fields.
Fields insideOf(const Json& value, const std::string& path, const char* type,
                const ToolStyle& style) {
  const Fields outer(value, path);
  return style.wrapped ? Fields(outer.need(type, "an object with a name"), outer.nameOf(type))
                       : outer;
}

std::string typeOf(const Fields& fields) { return fields.text("type").value_or("function"); }

std::string textOr(const Fields& fields, const char* name, const char* otherwise) {
  return fields.text(name).value_or(otherwise);
}

/// The schema of a custom tool's text.
Json inputSchema(const Fields& custom) {
  Json schema = {{"type", "string"}};
  const Json* const given = custom.find("format");
  if (given == nullptr) {
    return schema;
  }
  const Fields format(*given, custom.nameOf("format"));
  if (format.text("type").value_or("text") == "text") {
    return schema;
  }
  const Json* const inner = format.find("grammar");
  const Fields grammar(inner != nullptr ? *inner : *given, custom.nameOf("format"));
  if (grammar.text("syntax").value_or("") != "regex") {
    throw ApiError{400,
                   custom.nameOf("format") +
                       " is a grammar that is not taken here: give \"syntax\": \"regex\", or none",
                   custom.nameOf("format"), "unsupported_parameter", 0};
  }
  schema["pattern"] = "^(?:" + grammar.text("definition").value_or("") + ")$";
  return schema;
}

void readTool(const Json& tool, const std::string& path, const ToolStyle& style, ToolList* tools) {
  const std::string type = typeOf(Fields(tool, path));
  if (type == "custom") {
    const Fields custom = insideOf(tool, path, "custom", style);
    tools->addText(style.wrapped ? path + ".custom" : path, textOr(custom, "name", ""),
                   textOr(custom, "description", ""), inputSchema(custom));
    return;
  }
  if (type != "function") {
    throw ApiError{400,
                   path + ".type is " + type.substr(0, 64) +
                       ", which runs elsewhere: give tools of the types function and custom",
                   path + ".type", "unsupported_tool", 0};
  }
  const Fields function = insideOf(tool, path, "function", style);
  const std::string name = textOr(function, "name", "");
  const std::string own_path = style.wrapped ? path + ".function" : path;
  const std::string description = textOr(function, "description", "");
  const Json* const parameters = function.find("parameters");
  const bool strict = function.boolean("strict").value_or(false);
  const Json made = functionTool(name, description, parameters != nullptr ? *parameters : Json(),
                                 strict, own_path + ".parameters");
  tools->add(own_path, name, style.wrapped ? tool : made);
}

std::string chosenName(const Json& choice, const std::string& path, const ToolStyle& style) {
  const std::string type = typeOf(Fields(choice, path));
  if (type != "function" && type != "custom") {
    throw wrongField(path + ".type", "\"function\", \"custom\" or \"allowed_tools\"");
  }
  return textOr(insideOf(choice, path, type.c_str(), style), "name", "");
}

CallChoice choiceOf(const std::string& word, const std::string& param) {
  if (word == "auto") {
    return CallChoice::kAuto;
  }
  if (word == "required") {
    return CallChoice::kRequired;
  }
  if (word == "none") {
    return CallChoice::kNone;
  }
  throw wrongField(param, "\"auto\", \"none\", \"required\" or a function");
}

/// {"type": "allowed_tools", ...}: restricts the callable tools.
CallChoice readAllowed(const Json& choice, const ToolStyle& style, ToolList* tools) {
  constexpr char kPath[] = "tool_choice";
  const Fields allowed = insideOf(choice, kPath, "allowed_tools", style);
  const Json& list = allowed.need("tools", "a list of tools");
  if (!list.is_array()) {
    throw wrongField(allowed.nameOf("tools"), "a list of tools");
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    names.push_back(
        chosenName(list[i], allowed.nameOf("tools") + "[" + std::to_string(i) + "]", style));
  }
  tools->keepOnly(names, allowed.nameOf("tools"));
  return choiceOf(textOr(allowed, "mode", "auto"), allowed.nameOf("mode"));
}

CallChoice readChoice(const Json* choice, const ToolStyle& style, ToolList* tools) {
  if (choice == nullptr) {
    return CallChoice::kAuto;
  }
  if (!choice->is_object()) {
    return choiceOf(choice->is_string() ? choice->get<std::string>() : "", "tool_choice");
  }
  if (typeOf(Fields(*choice, "tool_choice")) == "allowed_tools") {
    return readAllowed(*choice, style, tools);
  }
  const std::string name = chosenName(*choice, "tool_choice", style);
  if (!tools->empty()) {
    tools->keepOnly({name}, style.wrapped ? "tool_choice.function.name" : "tool_choice.name");
  }
  return CallChoice::kRequired;
}

}  // namespace

void readToolFields(const Fields& fields, const ToolStyle& style, ReplyRequest* request) {
  for (const char* old : {"functions", "function_call"}) {
    const Json* const value = fields.find(old);
    const bool says_nothing =
        value == nullptr || *value == Json::array() || *value == "auto" || *value == "none";
    if (!says_nothing) {
      throw ApiError{400, std::string(old) + " is not supported: give tools and tool_choice", old,
                     "unsupported_parameter", 0};
    }
  }
  ToolList tools;
  const Json* const list = fields.find("tools");
  if (list != nullptr && !list->is_array()) {
    throw wrongField("tools", "a list of at most 128 tools");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    readTool((*list)[i], "tools[" + std::to_string(i) + "]", style, &tools);
  }
  const CallChoice choice = readChoice(fields.find("tool_choice"), style, &tools);
  tools.choose(choice, "tool_choice", request);
  request->several_calls = fields.boolean("parallel_tool_calls").value_or(true);
}

}  // namespace cli
