// The tools of a request and its tool choice, independent of the protocol.
#pragma once

#include <string>
#include <vector>

#include "serve/reply_request.h"

namespace cli {

enum class CallChoice { kAuto, kNone, kRequired };

class ToolList {
 public:
  /// Adds a tool in OpenAI's form, as passed to the template. `path`: its position, for errors.
  void add(const std::string& path, const std::string& name, const Json& tool);
  /// Adds a tool with a text input. `schema`: of that text.
  void addText(const std::string& path, const std::string& name, const std::string& description,
               const Json& schema);
  bool empty() const { return tools_.empty(); }
  /// Keeps only these. `param`: the field that names them.
  void keepOnly(const std::vector<std::string>& names, const std::string& param);
  /// Stores the choice in the request. `param`: its field.
  void choose(CallChoice choice, const std::string& param, ReplyRequest* request);

 private:
  void checkName(const std::string& path, const std::string& name) const;

  Json tools_ = Json::array();
  std::vector<std::string> names_;
  std::vector<std::string> text_tools_;
};

/// A tool in OpenAI's form. `parameters`: its JSON schema, or null. `path`: the schema's position, for errors.
Json functionTool(const std::string& name, const std::string& description, const Json& parameters,
                  bool strict, const std::string& path);
/// Converts between a text tool's call arguments and its text.
std::string textToolArguments(const std::string& input);
std::string textToolInput(const std::string& arguments);

}  // namespace cli
