#include "serve/ollama/ollama_writer.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "reply/reply_parts.h"
#include "serve/ids.h"

namespace cli {
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
