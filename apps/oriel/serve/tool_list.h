// The tools of a request and the choice among them, whatever protocol they came in.
#pragma once

#include <string>
#include <vector>

#include "serve/reply_request.h"

namespace cli {

enum class CallChoice { kAuto, kNone, kRequired };

class ToolList {
 public:
  /// One tool in OpenAI's form, as the template gets it. `path` is where it stands, for errors.
  void add(const std::string& path, const std::string& name, const Json& tool);
  /// A tool that takes one text. `schema`: of that text.
  void addText(const std::string& path, const std::string& name, const std::string& description,
               const Json& schema);
  bool empty() const { return tools_.empty(); }
  /// Leaves only these. `param`: where they are named.
  void keepOnly(const std::vector<std::string>& names, const std::string& param);
  /// Into the request. `param`: of the choice.
  void choose(CallChoice choice, const std::string& param, ReplyRequest* request);

 private:
  void checkName(const std::string& path, const std::string& name) const;

  Json tools_ = Json::array();
  std::vector<std::string> names_;
  std::vector<std::string> text_tools_;
};

/// A tool in OpenAI's form. `parameters`: its JSON schema, or null. `path` is that of the schema, for errors.
Json functionTool(const std::string& name, const std::string& description, const Json& parameters,
                  bool strict, const std::string& path);
/// The arguments of a call of a text tool, and the text in them.
std::string textToolArguments(const std::string& input);
std::string textToolInput(const std::string& arguments);

}  // namespace cli
