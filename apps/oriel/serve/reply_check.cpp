#include "serve/message.h"

#include <cstring>

#include "serve/api_error.h"
#include "serve/slot.h"

namespace cli {
namespace {

bool checksCalls(const char* tool_choice) {
  return std::strcmp(tool_choice, "checked") == 0 || std::strcmp(tool_choice, "required") == 0;
}

}  // namespace

ReplyCheck::Result ReplyCheck::compile(const ChatForm& form, const ReplyForm& held,
                                       const char* tool_choice) {
  Settings reply;
  if (!held.schema.empty()) {
    reply.set("schema", held.schema);
  }
  if (!held.grammar.empty()) {
    reply.set("grammar", held.grammar);
  }
  if (checksCalls(tool_choice)) {
    reply.set("tool_choice", tool_choice);
  }
  reply.set("strict_schema", reply_.is("strict_schema", "true") ? "true" : "false");
  reply.set("open_objects", !held.strict && reply_.is("open_objects", "true") ? "true" : "false");
  Json json;
  const oriel_status status = model_.compileForm(sessionSettings(base_, form), reply, &json);
  if (status != ORIEL_OK) {
    throw failedCall(status, oriel_model_last_error(model_.get()));
  }
  return {json["error"].is_string() ? json["error"].get<std::string>() : "",
          json["unchecked_tools"].get<std::vector<std::string>>()};
}

/// Finds the part that fails alone.
std::string ReplyCheck::guiltyField(const ReplyRequest& request) {
  if (!checksCalls(request.tool_choice) ||
      (request.held.given() && !compile({}, request.held, "none").error.empty())) {
    return request.held.param;
  }
  const Json tools = jsonFrom(request.form.tools);
  for (size_t i = 0; i < tools.size(); ++i) {
    ChatForm alone = request.form;
    alone.tools = dumped(Json::array({tools[i]}));
    if (!compile(alone, {}, request.tool_choice).error.empty()) {
      return "tools[" + std::to_string(i) + "]";
    }
  }
  return "tools";
}

void ReplyCheck::check(ReplyRequest* request) {
  if (!request->held.given() && !checksCalls(request->tool_choice)) {
    return;
  }
  const std::lock_guard<std::mutex> hold(lock_);
  Result result = compile(request->form, request->held, request->tool_choice);
  if (!result.error.empty()) {
    throw ApiError{400, result.error, guiltyField(*request), "unsupported_schema", 0};
  }
  request->unchecked_tools = std::move(result.unchecked);
}

}  // namespace cli
