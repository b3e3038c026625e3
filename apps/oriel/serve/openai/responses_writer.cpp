#include "serve/openai/responses_writer.h"

#include <cstring>
#include <utility>

#include "serve/ids.h"

namespace cli {

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
