#include "serve/protocols.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "reply/reply_parts.h"
#include "serve/api_error.h"
#include "serve/message.h"
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

namespace {

constexpr char kLines[] = "application/x-ndjson";

int64_t nanoseconds(double milliseconds) { return static_cast<int64_t>(milliseconds * 1e6); }

Json emptyLine(const std::string& model_name, OllamaForm form) {
  Json json;
  json["model"] = model_name;
  json["created_at"] = ollamaTime(static_cast<int64_t>(std::time(nullptr)));
  if (form == OllamaForm::kChat) {
    json["message"]["role"] = "assistant";
    json["message"]["content"] = "";
  } else {
    json["response"] = "";
  }
  return json;
}

}  // namespace

std::string ollamaTime(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Json ollamaLoaded(const std::string& model_name, OllamaForm form) {
  Json json = emptyLine(model_name, form);
  json["done_reason"] = "load";
  json["done"] = true;
  return json;
}

OllamaWriter::OllamaWriter(const ReplyContext& context, OllamaForm form)
    : BlockWriter(context), form_(form) {}

Json OllamaWriter::line(const std::string& text, const std::string& thought,
                        const Json& calls) const {
  Json json = emptyLine(context().model_name, form_);
  Json& said = form_ == OllamaForm::kChat ? json["message"] : json;
  said[form_ == OllamaForm::kChat ? "content" : "response"] = text;
  if (!thought.empty()) {
    said["thinking"] = thought;
  }
  if (!calls.empty()) {
    said["tool_calls"] = calls;
  }
  json["done"] = false;
  return json;
}

void OllamaWriter::sendLine(const Json& json) { send(kLines, dumped(json) + "\n"); }

void OllamaWriter::open(Block, const std::string& name) {
  name_ = name;
  arguments_.clear();
}

void OllamaWriter::add(Block block, const std::string& text) {
  if (block == Block::kCall) {
    arguments_ += text;
    return;
  }
  const bool is_text = block == Block::kText;
  (is_text ? text_ : thought_) += text;
  sendLine(line(is_text ? text : "", is_text ? "" : text, Json::array()));
}

/// Calls are sent complete.
void OllamaWriter::close(Block block, bool complete) {
  if (block != Block::kCall || !complete) {
    return;
  }
  Json call;
  call["id"] = newId("call_");
  call["function"]["index"] = calls_.size();
  call["function"].update(callJson({name_, arguments_, true}));
  calls_.push_back(call);
  sendLine(line("", "", Json::array({call})));
}

void OllamaWriter::finish(const ReplyOutcome& outcome) {
  const std::chrono::duration<double, std::milli> time = Clock::now() - start_;
  const double first = outcome.result.time_to_first_token_ms;
  last_["done"] = true;
  last_["done_reason"] = reachedLength(outcome) ? "length" : "stop";
  last_["total_duration"] = nanoseconds(time.count());
  last_["load_duration"] = 0;
  last_["prompt_eval_count"] = outcome.prompt_tokens;
  last_["prompt_eval_duration"] = nanoseconds(first);
  last_["eval_count"] = outcome.result.tokens;
  last_["eval_duration"] = nanoseconds(std::max(time.count() - first, 0.0));
  last_["oriel"] = extraOf(request(), outcome);
}

void OllamaWriter::end() {
  Json json = request().stream ? line("", "", Json::array()) : line(text_, thought_, calls_);
  json.update(last_);
  if (!request().stream) {
    exchange()->send(200, kJsonType, dumped(json));
    return;
  }
  sendLine(json);
  exchange()->endStream();
}

void OllamaWriter::sendFailure(const ApiError& error) { sendLine(ollamaError(error)); }

std::unique_ptr<ReplyWriter> writeOllamaChat(const ReplyContext& context) {
  return std::make_unique<OllamaWriter>(context, OllamaForm::kChat);
}

std::unique_ptr<ReplyWriter> writeOllamaGenerate(const ReplyContext& context) {
  return std::make_unique<OllamaWriter>(context, OllamaForm::kGenerate);
}

}  // namespace cli
