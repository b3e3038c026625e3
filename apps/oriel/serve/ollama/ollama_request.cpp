#include "serve/ollama/ollama_request.h"

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/tool_fields.h"
#include "serve/request_fields.h"

namespace cli {
namespace {

void refuseImages(const Fields& fields) {
  const Json* const images = fields.find("images");
  if (images != nullptr && !(images->is_array() && images->empty())) {
    throw ApiError{
        400, fields.nameOf("images") + " has pictures, and the model reads text only: send text",
        fields.nameOf("images"), "unsupported_content", 0};
  }
}

ChatMessage readOllamaMessage(const Json& value, const std::string& path) {
  const Fields fields(value, path);
  const std::string role = fields.text("role").value_or("");
  const std::string text = readContent(fields, "content").value_or("");
  refuseImages(fields);
  if (role == "assistant") {
    return assistantMessage(text, fields.text("thinking").value_or(""), readPastCalls(fields));
  }
  if (role == "tool") {
    const std::string name = fields.text("tool_name").value_or(fields.text("name").value_or(""));
    return resultMessage(fields.text("tool_call_id").value_or(""), name, text);
  }
  if (role != "system" && role != "user") {
    throw wrongField(fields.nameOf("role"), "system, user, assistant or tool");
  }
  return plainMessage(role, text);
}

void readThink(const Fields& fields, ReplyRequest* request) {
  const Json* const think = fields.find("think");
  if (think == nullptr) {
    return;
  }
  if (think->is_boolean()) {
    request->form.thinking = think->get<bool>();
  } else {
    readEffort(fields.text("think"), request);
  }
}

void readOptions(const Fields& fields, ReplyRequest* request) {
  const Json* const given = fields.find("options");
  if (given == nullptr) {
    return;
  }
  const Fields options(*given, "options");
  readSampling(options, request);
  readStop(options, "stop", request);
  const std::optional<int64_t> most = options.whole("num_predict", -2, kMostReplyTokens);
  if (most) {
    request->max_tokens = *most < 0 ? 0 : static_cast<uint32_t>(*most == 0 ? 1 : *most);
  }
}

void readFormat(const Fields& fields, ReplyRequest* request) {
  const Json* const format = fields.find("format");
  if (format == nullptr || *format == "") {
    return;
  }
  if (*format == "json") {
    holdToAnyObject("format", request);
  } else if (format->is_object()) {
    holdToSchema(*format, "format", request);
  } else {
    throw wrongField("format", "\"json\" or a JSON schema");
  }
}

void readCommon(const Fields& fields, ReplyRequest* request) {
  request->stream = fields.boolean("stream").value_or(true);
  readOptions(fields, request);
  readFormat(fields, request);
  readThink(fields, request);
}

}  // namespace

ReplyRequest readOllamaChat(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request;
  readCommon(fields, &request);
  const Json* const list = fields.find("messages");
  if (list != nullptr && (!list->is_array() || list->size() > kMostMessages)) {
    throw wrongField("messages", "a list of messages");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    request.messages.push_back(
        readOllamaMessage((*list)[i], "messages[" + std::to_string(i) + "]"));
  }
  readToolFields(fields, kChatTools, &request);
  return request;
}

ReplyRequest readOllamaGenerate(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request;
  readCommon(fields, &request);
  refuseImages(fields);
  refuseField(fields, "context", "no context is handed out: use /api/chat with all messages");
  refuseField(fields, "template", "start the server with --template");
  const std::string prompt = fields.text("prompt").value_or("");
  const std::string system = fields.text("system").value_or("");
  if (prompt.empty()) {
    return request;
  }
  const bool has_suffix = !fields.text("suffix").value_or("").empty();
  request.is_chat = !has_suffix && !fields.boolean("raw").value_or(false);
  if (!request.is_chat) {
    request.prompts.emplace_back().text = prompt;
    readSuffix(fields, &request);
    return request;
  }
  if (!system.empty()) {
    request.messages.push_back(plainMessage("system", system));
  }
  request.messages.push_back(plainMessage("user", prompt));
  return request;
}

}  // namespace cli
