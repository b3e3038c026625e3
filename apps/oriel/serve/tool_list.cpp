#include "serve/tool_list.h"

#include <algorithm>
#include <utility>

#include "serve/api_error.h"

namespace cli {
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
  const Json parsed = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  const bool holds = parsed.is_object() && parsed.contains(kInput) && parsed[kInput].is_string();
  return holds ? parsed[kInput].get<std::string>() : arguments;
}

}  // namespace cli
