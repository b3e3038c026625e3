#include "serve/ollama/ollama_request.h"

#include <utility>

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/tool_fields.h"
#include "serve/request_fields.h"

namespace cli {
namespace {

/// The list `images`: pictures in base64. True: there are some.
bool readImages(const Fields& fields, UserMessage* message) {
  const Json* const images = fields.find("images");
  if (images == nullptr) {
    return false;
  }
  const std::string path = fields.nameOf("images");
  if (!images->is_array()) {
    throw wrongField(path, "a list of pictures in base64");
  }
  for (size_t i = 0; i < images->size(); ++i) {
    const Json& image = (*images)[i];
    message->addPicture(image.is_string() ? image.get<std::string>() : "",
                        path + "[" + std::to_string(i) + "]");
  }
  return !images->empty();
}

void refuseImages(const Fields& fields, const char* why) {
  UserMessage message;
  if (readImages(fields, &message)) {
    refuseField(fields, "images", why);
  }
}

ChatMessage withImages(const Fields& fields, const std::string& text) {
  UserMessage message;
  (void)readImages(fields, &message);
  message.addText(text);
  return message.take();
}

ChatMessage readOllamaMessage(const Json& value, const std::string& path) {
  const Fields fields(value, path);
  const std::string role = fields.text("role").value_or("");
  const std::string text = readContent(fields, "content").value_or("");
  if (role == "user") {
    return withImages(fields, text);
  }
  refuseImages(fields, "send pictures as the user");
  if (role == "assistant") {
    return assistantMessage(text, fields.text("thinking").value_or(""), readPastCalls(fields));
  }
  if (role == "tool") {
    const std::string name = fields.text("tool_name").value_or(fields.text("name").value_or(""));
    return resultMessage(fields.text("tool_call_id").value_or(""), name, text);
  }
  if (role != "system") {
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
  refuseField(fields, "context", "no context is handed out: use /api/chat with all messages");
  refuseField(fields, "template", "start the server with --template");
  const std::string prompt = fields.text("prompt").value_or("");
  const std::string system = fields.text("system").value_or("");
  ChatMessage message = withImages(fields, prompt);
  if (prompt.empty() && !message.has_pictures) {
    return request;
  }
  const bool has_suffix = !fields.text("suffix").value_or("").empty();
  request.is_chat = !has_suffix && !fields.boolean("raw").value_or(false);
  if (!request.is_chat) {
    refuseImages(fields, "they need the chat format: leave out raw and suffix");
    request.prompts.emplace_back().text = prompt;
    readSuffix(fields, &request);
    return request;
  }
  if (!system.empty()) {
    request.messages.push_back(plainMessage("system", system));
  }
  request.messages.push_back(std::move(message));
  return request;
}

}  // namespace cli
