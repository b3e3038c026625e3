#include "serve/anthropic/messages_writer.h"

#include <utility>

#include "serve/ids.h"

namespace cli {
namespace {

Json usageOf(uint64_t prompt, uint64_t cached, uint64_t reply) {
  Json usage;
  usage["input_tokens"] = prompt - cached;
  usage["cache_creation_input_tokens"] = 0;
  usage["cache_read_input_tokens"] = cached;
  usage["output_tokens"] = reply;
  return usage;
}

}  // namespace

MessagesWriter::MessagesWriter(const ReplyContext& context)
    : BlockWriter(context), id_(newId("msg_")), usage_(usageOf(0, 0, 0)) {}

Json MessagesWriter::message() const {
  Json json;
  json["id"] = id_;
  json["type"] = "message";
  json["role"] = "assistant";
  json["model"] = context().model_name;
  json["content"] = content_;
  json["stop_reason"] = stop_reason_;
  json["stop_sequence"] = stop_sequence_;
  json["usage"] = usage_;
  if (!extra_.is_null()) {
    json["oriel"] = extra_;
  }
  return json;
}

void MessagesWriter::sendEvent(const char* type, Json fields) {
  if (request().stream) {
    Json event;
    event["type"] = type;
    event.update(fields);
    send(kEventStream, serverEvent(type, event));
  }
}

void MessagesWriter::begin() { sendEvent("message_start", {{"message", message()}}); }

void MessagesWriter::open(Block block, const std::string& name) {
  text_.clear();
  block_ = Json::object();
  if (block == Block::kCall) {
    block_["type"] = "tool_use";
    block_["id"] = newId("toolu_");
    block_["name"] = name;
    block_["input"] = Json::object();
  } else if (block == Block::kThought) {
    block_["type"] = "thinking";
    block_["thinking"] = "";
    block_["signature"] = "";
  } else {
    block_["type"] = "text";
    block_["text"] = "";
  }
  sendEvent("content_block_start", {{"index", content_.size()}, {"content_block", block_}});
}

void MessagesWriter::add(Block block, const std::string& text) {
  text_ += text;
  Json delta;
  if (block == Block::kCall) {
    delta["type"] = "input_json_delta";
    delta["partial_json"] = text;
  } else if (block == Block::kThought) {
    delta["type"] = "thinking_delta";
    delta["thinking"] = text;
  } else {
    delta["type"] = "text_delta";
    delta["text"] = text;
  }
  sendEvent("content_block_delta", {{"index", content_.size()}, {"delta", std::move(delta)}});
}

void MessagesWriter::close(Block block, bool complete) {
  sendEvent("content_block_stop", {{"index", content_.size()}});
  if (!complete && !request().stream) {
    return;  // a truncated call is dropped
  }
  if (block == Block::kCall) {
    const Json input = Json::parse(text_, nullptr, /*allow_exceptions=*/false);
    block_["input"] = input.is_object() ? input : Json::object();
  } else {
    block_[block == Block::kThought ? "thinking" : "text"] = text_;
  }
  content_.push_back(std::move(block_));
}

void MessagesWriter::finish(const ReplyOutcome& outcome) {
  const bool stopped = outcome.result.stop_reason == ORIEL_STOP_TEXT;
  stop_reason_ = reachedLength(outcome)                   ? "max_tokens"
                 : !outcome.parts.completeCalls().empty() ? "tool_use"
                 : stopped                                ? "stop_sequence"
                                                          : "end_turn";
  if (stopped && request().stop.size() == 1) {
    stop_sequence_ = request().stop[0];
  }
  usage_ = usageOf(outcome.prompt_tokens, outcome.cached_tokens, outcome.result.tokens);
  extra_ = extraOf(request(), outcome);
}

void MessagesWriter::end() {
  if (!request().stream) {
    exchange()->send(200, kJsonType, dumped(message()));
    return;
  }
  sendEvent("message_delta",
            {{"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
             {"usage", usage_},
             {"oriel", extra_}});
  sendEvent("message_stop", Json::object());
  exchange()->endStream();
}

void MessagesWriter::sendFailure(const ApiError& error) {
  send(kEventStream, serverEvent("error", messagesError(error)));
}

std::unique_ptr<ReplyWriter> writeMessages(const ReplyContext& context) {
  return std::make_unique<MessagesWriter>(context);
}

}  // namespace cli
