#include "serve/protocols.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <utility>

#include "serve/api_error.h"
#include "serve/message.h"

namespace cli {
namespace {

/// Most tokens whose probabilities wait for a text to be sent with.
constexpr size_t kMostPending = 64;

/// JSON has no infinity; OpenAI uses this value for nearly impossible tokens.
Json logprobOf(float value) { return numberOf(std::isfinite(value) ? value : -9999.0f); }

Json bytesOf(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) {
    bytes.push_back(static_cast<unsigned char>(c));
  }
  return bytes;
}

// OpenAI's name for a token whose bytes are not valid text: several would become U+FFFD.
std::string keyOf(const std::string& text) {
  try {
    (void)Json(text).dump();
    return text;
  } catch (const Json::exception&) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string key = "bytes:";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      key += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
    return key;
  }
}

const char* finishReason(const ReplyOutcome& outcome) {
  return reachedLength(outcome)                  ? "length"
         : outcome.parts.completeCalls().empty() ? "stop"
                                                 : "tool_calls";
}

}  // namespace

ChatWriter::ChatWriter(const ReplyContext& context)
    : model_(context.model),
      model_name_(context.model_name),
      request_(context.request),
      exchange_(context.exchange),
      id_(newId(request_.is_chat ? "chatcmpl-" : "cmpl-")),
      created_(static_cast<int64_t>(std::time(nullptr))) {}

Json ChatWriter::callJson(const std::string& id, const ToolCall& call) const {
  Json json;
  json["id"] = id;
  if (request_.isTextTool(call.name)) {
    json["type"] = "custom";
    json["custom"]["name"] = call.name;
    json["custom"]["input"] = textToolInput(call.arguments);
  } else {
    json["type"] = "function";
    json["function"]["name"] = call.name;
    json["function"]["arguments"] = call.arguments;
  }
  return json;
}

Json ChatWriter::head() const {
  Json json;
  json["id"] = id_;
  json["object"] = !request_.is_chat ? "text_completion"
                   : request_.stream ? "chat.completion.chunk"
                                     : "chat.completion";
  json["created"] = created_;
  json["model"] = model_name_;
  json["system_fingerprint"] = std::string("oriel-") + oriel_version();
  return json;
}

bool ChatWriter::sendEvent(const Json& event) {
  return (exchange_->begun() || exchange_->beginStream(kEventStream)) &&
         exchange_->write("data: " + dumped(event) + "\n\n");
}

bool ChatWriter::sendChoice(Json choice) {
  Json event = head();
  event["choices"] = Json::array({std::move(choice)});
  if (request_.include_usage) {
    event["usage"] = nullptr;
  }
  return sendEvent(event);
}

/// The role, sent with the first content: before that a failure can still set the status.
bool ChatWriter::begin() {
  if (choice_begun_ || !request_.is_chat) {
    return true;
  }
  choice_begun_ = true;
  Json choice;
  choice["index"] = number_;
  choice["delta"]["role"] = "assistant";
  choice["delta"]["content"] = "";
  choice["finish_reason"] = nullptr;
  return sendChoice(std::move(choice));
}

bool ChatWriter::sendDelta(Json delta) {
  Json choice;
  choice["index"] = number_;
  if (request_.is_chat) {
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = delta["content"];
  }
  if (request_.logprobs) {
    choice["logprobs"] = takeLogprobs();
  }
  choice["finish_reason"] = nullptr;
  return begin() && sendChoice(std::move(choice));
}

/// Arguments are streamed; the text of a text tool is sent at its end.
bool ChatWriter::takeCall(const oriel_part& part) {
  const std::string text(part.text, part.text_bytes);
  Json call;
  call["index"] = part.call;
  if (part.kind == ORIEL_PART_CALL_BEGUN) {
    call_ids_.push_back(newId("call_"));
    text_tool_ = request_.isTextTool(text);
    text_input_.clear();
    call.update(callJson(call_ids_.back(), {text, "", false}));
  } else if (text_tool_) {
    text_input_ += text;
    if (part.kind != ORIEL_PART_CALL_ENDED) {
      return true;
    }
    call["custom"]["input"] = textToolInput(text_input_);
  } else if (part.kind == ORIEL_PART_CALL_ARGUMENTS) {
    call["function"]["arguments"] = text;
  } else {
    return true;
  }
  Json delta;
  delta["tool_calls"] = Json::array({std::move(call)});
  return sendDelta(std::move(delta));
}

bool ChatWriter::takePart(const oriel_part& part) {
  const bool is_call = part.kind != ORIEL_PART_TEXT && part.kind != ORIEL_PART_THOUGHT;
  const bool goes_on = part.kind != ORIEL_PART_CALL_ENDED || request_.several_calls;
  if (!request_.stream || is_call) {
    return (!request_.stream || takeCall(part)) && goes_on;
  }
  const char* const name = part.kind == ORIEL_PART_THOUGHT ? "reasoning_content" : "content";
  const bool waits = request_.logprobs && pending_.contains(name);
  pending_[name] =
      (waits ? pending_[name].get<std::string>() : "") + std::string(part.text, part.text_bytes);
  return request_.logprobs || sendPending();
}

bool ChatWriter::sendPending() {
  if (pending_.empty()) {
    return true;
  }
  const bool sent = sendDelta(std::move(pending_));
  pending_ = Json::object();
  return sent;
}

bool ChatWriter::takeToken(const oriel_token_event& event) {
  // Text held back arrives as an additional event without a probability.
  if (request_.logprobs && event.top_count != 0) {
    const uint32_t count = std::min(event.top_count, request_.top_logprobs);
    tokens_.push_back({event.id, event.logprob, {event.top, event.top + count}});
  }
  // Tokens without text send nothing until enough of them have collected.
  if (request_.stream && tokens_.size() >= kMostPending && pending_.empty()) {
    pending_["content"] = "";
  }
  if (request_.is_chat) {
    return sendPending();
  }
  oriel_part part = {};
  part.kind = ORIEL_PART_TEXT;
  part.text = event.text;
  part.text_bytes = event.text_bytes;
  return (event.text_bytes == 0 || takePart(part)) && sendPending();
}

ReplySink ChatWriter::sinkFor(uint32_t number) {
  number_ = number;
  choice_begun_ = false;
  call_ids_.clear();
  tokens_.clear();
  text_offset_ = 0;
  pending_ = Json::object();
  return {[this](const oriel_part& part) { return takePart(part); },
          [this](const oriel_token_event& event) { return takeToken(event); }};
}

std::string ChatWriter::tokenText(int32_t id) const {
  return model_.detokenize({id}, ORIEL_TEXT_SPECIAL);
}

/// OpenAI's lists with one entry per token.
std::vector<const char*> ChatWriter::logprobLists() const {
  if (request_.is_chat) {
    return {"content"};
  }
  return {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
}

Json ChatWriter::logprobEntry(int32_t id, float logprob) const {
  const std::string text = tokenText(id);
  Json json;
  json["token"] = text;
  json["logprob"] = logprobOf(logprob);
  json["bytes"] = bytesOf(text);
  return json;
}

/// A token's entry in the given list. `offset`: start of its text, in characters.
Json ChatWriter::logprobOfToken(const std::string& list, const Token& token, size_t* offset) const {
  if (list == "content") {
    Json one = logprobEntry(token.id, token.logprob);
    one["top_logprobs"] = Json::array();
    for (const oriel_token_logprob& top : token.top) {
      one["top_logprobs"].push_back(logprobEntry(top.id, top.logprob));
    }
    return one;
  }
  if (list == "top_logprobs") {
    Json top = Json::object();
    for (const oriel_token_logprob& each : token.top) {
      top[keyOf(tokenText(each.id))] = logprobOf(each.logprob);
    }
    return top;
  }
  if (list == "token_logprobs") {
    return logprobOf(token.logprob);
  }
  const std::string text = tokenText(token.id);
  if (list == "tokens") {
    return text;
  }
  // Continuation bytes of a character, which may be a token of their own, start no character.
  const size_t begin = *offset;
  *offset +=
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
  return begin;
}

Json ChatWriter::takeLogprobs() {
  Json json = Json::object();
  for (const char* list : logprobLists()) {
    json[list] = Json::array();
    for (const Token& token : tokens_) {
      json[list].push_back(logprobOfToken(list, token, &text_offset_));
    }
  }
  if (request_.is_chat) {
    json["refusal"] = nullptr;
  }
  tokens_.clear();
  return json;
}

Json ChatWriter::wholeChoice(const ReplyOutcome& outcome, const char* reason) {
  Json choice;
  choice["index"] = number_;
  if (request_.is_chat) {
    const std::vector<ToolCall> calls = outcome.parts.completeCalls();
    Json message;
    message["role"] = "assistant";
    message["content"] =
        outcome.parts.text.empty() && !calls.empty() ? Json() : Json(outcome.parts.text);
    message["refusal"] = nullptr;
    if (!outcome.parts.thought.empty()) {
      message["reasoning_content"] = outcome.parts.thought;
    }
    for (const ToolCall& call : calls) {
      message["tool_calls"].push_back(callJson(newId("call_"), call));
    }
    choice["message"] = std::move(message);
  } else {
    choice["text"] = outcome.parts.text;
  }
  if (!request_.logprobs) {
    choice["logprobs"] = nullptr;
  }
  choice["finish_reason"] = reason;
  return choice;
}

void ChatWriter::endChoice(const ReplyOutcome& outcome, bool counts_prompt) {
  if (counts_prompt) {
    prompt_tokens_ += outcome.prompt_tokens;
    cached_tokens_ += outcome.cached_tokens;
  }
  reply_tokens_ += outcome.result.tokens;
  extra_ = extraOf(request_, outcome);
  const char* const reason = finishReason(outcome);
  if (!request_.stream) {
    choices_.push_back({wholeChoice(outcome, reason), std::move(tokens_)});
    return;
  }
  sendPending();
  Json choice;
  choice["index"] = number_;
  if (request_.is_chat) {
    choice["delta"] = Json::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = request_.logprobs && !tokens_.empty() ? takeLogprobs() : Json();
  choice["finish_reason"] = reason;
  Json event = head();
  event["choices"] = Json::array({std::move(choice)});
  if (request_.include_usage) {
    event["usage"] = nullptr;
  }
  event["oriel"] = extra_;
  if (begin()) {
    sendEvent(event);
  }
}

Json ChatWriter::usage() const {
  Json usage;
  usage["prompt_tokens"] = prompt_tokens_;
  usage["completion_tokens"] = reply_tokens_;
  usage["total_tokens"] = prompt_tokens_ + reply_tokens_;
  usage["prompt_tokens_details"]["cached_tokens"] = cached_tokens_;
  return usage;
}

void ChatWriter::end() {
  if (request_.stream) {
    if (request_.include_usage) {
      Json event = head();
      event["choices"] = Json::array();
      event["usage"] = usage();
      sendEvent(event);
    }
    exchange_->write("data: [DONE]\n\n");
    exchange_->endStream();
    return;
  }
  if (request_.logprobs) {
    writeInPieces();
    return;
  }
  Json json = head();
  json["choices"] = Json::array();
  for (Whole& each : choices_) {
    json["choices"].push_back(std::move(each.choice));
  }
  json["usage"] = usage();
  json["oriel"] = extra_;
  exchange_->send(200, kJsonType, dumped(json));
}

/// Writes one token's probabilities at a time: together they are many times as long as the reply.
void ChatWriter::writeInPieces() {
  constexpr size_t kPieceBytes = 16384;
  std::string piece = dumped(head());
  piece.back() = ',';
  piece += "\"choices\":[";
  exchange_->beginStream(kJsonType);
  for (const Whole& each : choices_) {
    piece += &each == &choices_.front() ? "" : ",";
    piece += dumped(each.choice);
    piece.back() = ',';
    piece += "\"logprobs\":{";
    size_t offset = 0;
    for (const char* list : logprobLists()) {
      piece += "\"" + std::string(list) + "\":[";
      for (const Token& token : each.tokens) {
        piece += (&token == each.tokens.data() ? "" : ",") +
                 dumped(logprobOfToken(list, token, &offset));
        if (piece.size() >= kPieceBytes) {
          if (!exchange_->write(piece)) {
            return;
          }
          piece.clear();
        }
      }
      piece += "],";
    }
    if (request_.is_chat) {
      piece += "\"refusal\":null,";
    }
    piece.back() = '}';
    piece += '}';
  }
  Json rest;
  rest["usage"] = usage();
  rest["oriel"] = extra_;
  exchange_->write(piece + "]," + dumped(rest).substr(1));
  exchange_->endStream();
}

void ChatWriter::endWith(const ApiError& error) {
  if (!request_.stream) {  // a truncated reply must be visible as such
    exchange_->closeAfter();
    return;
  }
  sendEvent(errorJson(error));
  exchange_->endStream();
}

std::unique_ptr<ReplyWriter> writeChat(const ReplyContext& context) {
  return std::make_unique<ChatWriter>(context);
}

struct ResponsesWriter::Names {
  const char* delta;
  const char* done;
  const char* text;  ///< the field for the whole text in `done`
  const char* part;  ///< the type of the content's only part; null: none
};

namespace {

Json noPart(const char* type) {
  Json part;
  part["type"] = type;
  part["text"] = "";
  if (std::strcmp(type, "output_text") == 0) {
    part["annotations"] = Json::array();
    part["logprobs"] = Json::array();
  }
  return part;
}

}  // namespace

ResponsesWriter::ResponsesWriter(const ReplyContext& context)
    : BlockWriter(context),
      id_(newId("resp_")),
      created_(static_cast<int64_t>(std::time(nullptr))) {}

Json ResponsesWriter::response(const char* status) const {
  Json json;
  json["id"] = id_;
  json["object"] = "response";
  json["created_at"] = created_;
  json["status"] = status;
  json["background"] = false;
  json["error"] = nullptr;
  json["incomplete_details"] = nullptr;
  if (std::strcmp(status, "incomplete") == 0) {
    json["incomplete_details"] = {{"reason", "max_output_tokens"}};
  }
  json["model"] = context().model_name;
  json["output"] = output_;
  json["previous_response_id"] = nullptr;
  json["store"] = false;
  json["truncation"] = "disabled";
  json.update(request().echo);
  json["usage"] = usage_;
  if (!extra_.is_null()) {
    json["oriel"] = extra_;
  }
  return json;
}

void ResponsesWriter::sendEvent(const std::string& type, Json fields) {
  Json event;
  event["type"] = type;
  event["sequence_number"] = number_++;
  event.update(fields);
  send(kEventStream, serverEvent(type, event));
}

void ResponsesWriter::sendStatus(const char* type, const char* status) {
  if (request().stream) {
    sendEvent(type, {{"response", response(status)}});
  }
}

void ResponsesWriter::begin() {
  sendStatus("response.created", "in_progress");
  sendStatus("response.in_progress", "in_progress");
}

bool ResponsesWriter::isTextTool() const { return item_["type"] == "custom_tool_call"; }

const ResponsesWriter::Names& ResponsesWriter::namesOf(Block block) const {
  static constexpr Names kText = {"response.output_text.delta", "response.output_text.done", "text",
                                  "output_text"};
  static constexpr Names kThought = {"response.reasoning_text.delta",
                                     "response.reasoning_text.done", "text", "reasoning_text"};
  static constexpr Names kCall = {"response.function_call_arguments.delta",
                                  "response.function_call_arguments.done", "arguments", nullptr};
  static constexpr Names kTextTool = {"response.custom_tool_call_input.delta",
                                      "response.custom_tool_call_input.done", "input", nullptr};
  return block == Block::kText      ? kText
         : block == Block::kThought ? kThought
         : isTextTool()             ? kTextTool
                                    : kCall;
}

/// The position fields of an event.
Json ResponsesWriter::place() const {
  Json place;
  place["item_id"] = item_["id"];
  place["output_index"] = output_.size();
  return place;
}

void ResponsesWriter::sendPart(const char* type, const Names& names) {
  Json part = noPart(names.part);
  part["text"] = text_;
  Json event = place();
  event["content_index"] = 0;
  event["part"] = std::move(part);
  sendEvent(type, std::move(event));
}

void ResponsesWriter::open(Block block, const std::string& name) {
  text_.clear();
  item_ = Json::object();
  if (block == Block::kCall) {
    const bool is_text = request().isTextTool(name);
    item_["id"] = newId(is_text ? "ctc_" : "fc_");
    item_["type"] = is_text ? "custom_tool_call" : "function_call";
    item_["status"] = "in_progress";
    item_["call_id"] = newId("call_");
    item_["name"] = name;
    item_[is_text ? "input" : "arguments"] = "";
  } else if (block == Block::kText) {
    item_["id"] = newId("msg_");
    item_["type"] = "message";
    item_["status"] = "in_progress";
    item_["role"] = "assistant";
    item_["content"] = Json::array();
  } else {
    item_["id"] = newId("rs_");
    item_["type"] = "reasoning";
    item_["status"] = "in_progress";
    item_["summary"] = Json::array();
    item_["content"] = Json::array();
  }
  sendEvent("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
  if (block != Block::kCall) {
    sendPart("response.content_part.added", namesOf(block));
  }
}

void ResponsesWriter::add(Block block, const std::string& text) {
  text_ += text;
  if (!request().stream) {
    return;
  }
  const Names& names = namesOf(block);
  Json event = place();
  if (names.part != nullptr) {
    event["content_index"] = 0;
  }
  event["delta"] = text;
  if (block == Block::kText) {
    event["logprobs"] = Json::array();
  }
  sendEvent(names.delta, std::move(event));
}

void ResponsesWriter::close(Block block, bool complete) {
  if (!complete && !request().stream) {
    return;  // a truncated call is dropped
  }
  const Names& names = namesOf(block);
  Json event = place();
  if (names.part != nullptr) {
    event["content_index"] = 0;
    Json part = noPart(names.part);
    part["text"] = text_;
    item_["content"].push_back(std::move(part));
  } else {
    event["name"] = item_["name"];
    item_[names.text] = text_;
  }
  event[names.text] = text_;
  if (block == Block::kText) {
    event["logprobs"] = Json::array();
  }
  sendEvent(names.done, std::move(event));
  if (names.part != nullptr) {
    sendPart("response.content_part.done", names);
  }
  item_["status"] = complete ? "completed" : "incomplete";
  sendEvent("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
  output_.push_back(std::move(item_));
}

void ResponsesWriter::finish(const ReplyOutcome& outcome) {
  status_ = reachedLength(outcome) ? "incomplete" : "completed";
  usage_["input_tokens"] = outcome.prompt_tokens;
  usage_["input_tokens_details"]["cached_tokens"] = outcome.cached_tokens;
  usage_["output_tokens"] = outcome.result.tokens;
  usage_["output_tokens_details"]["reasoning_tokens"] = thoughtTokens();
  usage_["total_tokens"] = outcome.prompt_tokens + outcome.result.tokens;
  extra_ = extraOf(request(), outcome);
}

void ResponsesWriter::end() {
  if (!request().stream) {
    exchange()->send(200, kJsonType, dumped(response(status_)));
    return;
  }
  sendStatus(std::strcmp(status_, "completed") == 0 ? "response.completed" : "response.incomplete",
             status_);
  exchange()->endStream();
}

void ResponsesWriter::sendFailure(const ApiError& error) {
  Json failed = response("failed");
  failed["error"] = {{"code", error.code.empty() ? "server_error" : error.code},
                     {"message", error.message}};
  sendEvent("response.failed", {{"response", std::move(failed)}});
}

std::unique_ptr<ReplyWriter> writeResponses(const ReplyContext& context) {
  return std::make_unique<ResponsesWriter>(context);
}

}  // namespace cli
