#include "serve/protocols.h"

#include <utility>

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/request_fields.h"

namespace cli {
namespace {

/// The content blocks of one message. A user's message may contain tool results, which become messages of their own.
class BlockReader {
 public:
  BlockReader(bool is_user, ReplyRequest* request)
      : is_user_(is_user), messages_(request->messages) {}

  void read(const Json& block, const std::string& path) {
    const Fields fields(block, path);
    const std::string type = fields.text("type").value_or("");
    if (type == "tool_result" && is_user_) {
      flushUser();
      readResult(fields);
    } else if (type == "tool_use" && !is_user_) {
      readUse(fields);
    } else if (type == "thinking" && !is_user_) {
      thought_ += fields.text("thinking").value_or("");
    } else if (is_user_) {
      user_.add(block, path);
    } else {
      text_ = text_.value_or("") + partText(block, path);
    }
  }

  void end() {
    if (is_user_) {
      flushUser();
    } else {
      messages_.push_back(assistantMessage(text_, thought_, calls_));
    }
  }

 private:
  void flushUser() {
    if (!user_.empty()) {
      messages_.push_back(user_.take());
    }
  }

  void readResult(const Fields& fields) {
    const std::string id = fields.text("tool_use_id").value_or("");
    messages_.push_back(resultMessage(id, "", readContent(fields, "content").value_or("")));
  }

  void readUse(const Fields& fields) {
    PastCall call;
    call.id = fields.text("id").value_or("");
    call.name = fields.text("name").value_or("");
    if (call.name.empty()) {
      throw wrongField(fields.nameOf("name"), "the name of a tool");
    }
    call.arguments = pastArguments(fields.find("input"));
    calls_.push_back(std::move(call));
  }

  const bool is_user_;
  std::vector<ChatMessage>& messages_;
  UserMessage user_;
  std::optional<std::string> text_;  ///< of the model
  std::string thought_;
  std::vector<PastCall> calls_;
};

void readMessage(const Json& value, const std::string& path, ReplyRequest* request) {
  const Fields fields(value, path);
  const std::string role = fields.text("role").value_or("");
  if (role == "system") {
    request->messages.push_back(
        plainMessage("system", readContent(fields, "content").value_or("")));
    return;
  }
  if (role != "user" && role != "assistant") {
    throw wrongField(fields.nameOf("role"), "user or assistant");
  }
  const Json& content = fields.need("content", "a text or a list of blocks");
  const std::string content_path = fields.nameOf("content");
  BlockReader blocks(role == "user", request);
  if (content.is_string()) {
    blocks.read(Json{{"type", "text"}, {"text", content}}, content_path);
  } else if (content.is_array()) {
    for (size_t i = 0; i < content.size(); ++i) {
      blocks.read(content[i], content_path + "[" + std::to_string(i) + "]");
    }
  } else {
    throw wrongField(content_path, "a text or a list of blocks");
  }
  blocks.end();
}

void readMessages(const Fields& fields, ReplyRequest* request) {
  const std::optional<std::string> system = readContent(fields, "system");
  if (system && !system->empty()) {
    request->messages.push_back(plainMessage("system", *system));
  }
  const Json& list = fields.need("messages", "the conversation");
  if (!list.is_array() || list.empty() || list.size() > kMostMessages) {
    throw wrongField("messages", "a list of at least one message");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    readMessage(list[i], "messages[" + std::to_string(i) + "]", request);
  }
}

void readTools(const Fields& fields, ToolList* tools) {
  const Json* const list = fields.find("tools");
  if (list != nullptr && !list->is_array()) {
    throw wrongField("tools", "a list of tools");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    const Fields tool((*list)[i], path);
    const std::string type = tool.text("type").value_or("custom");
    if (type != "custom") {
      throw ApiError{400,
                     path + ".type is " + type.substr(0, 64) +
                         ", which runs elsewhere: give tools with an input_schema",
                     path + ".type", "unsupported_tool", 0};
    }
    const std::string name = tool.text("name").value_or("");
    const Json* const schema = tool.find("input_schema");
    tools->add(path, name,
               functionTool(name, tool.text("description").value_or(""),
                            schema != nullptr ? *schema : Json(),
                            tool.boolean("strict").value_or(false), path + ".input_schema"));
  }
}

void readToolChoice(const Fields& fields, ToolList* tools, ReplyRequest* request) {
  const Json* const given = fields.find("tool_choice");
  CallChoice choice = CallChoice::kAuto;
  if (given != nullptr) {
    const Fields asked(*given, "tool_choice");
    const std::string type = asked.text("type").value_or("");
    if (type == "tool") {
      tools->keepOnly({asked.text("name").value_or("")}, "tool_choice.name");
      choice = CallChoice::kRequired;
    } else if (type == "any" || type == "none") {
      choice = type == "any" ? CallChoice::kRequired : CallChoice::kNone;
    } else if (type != "auto") {
      throw wrongField("tool_choice.type", "\"auto\", \"any\", \"tool\" or \"none\"");
    }
    request->several_calls = !asked.boolean("disable_parallel_tool_use").value_or(false);
  }
  tools->choose(choice, "tool_choice", request);
}

void readThinking(const Fields& fields, ReplyRequest* request) {
  const Json* const thinking = fields.find("thinking");
  if (thinking != nullptr) {
    const Fields given(*thinking, "thinking");
    const std::string type = given.text("type").value_or("");
    if (type != "enabled" && type != "disabled" && type != "adaptive") {
      throw wrongField("thinking.type", "\"enabled\", \"adaptive\" or \"disabled\"");
    }
    if (type != "adaptive") {
      request->form.thinking = type == "enabled";
    }
    readThoughtLimit(given, "budget_tokens", request);
  }
}

void readForm(const Fields& fields, const std::string& path, ReplyRequest* request) {
  const Json* const format = fields.find(path == "output_format" ? "output_format" : "format");
  if (format == nullptr) {
    return;
  }
  const Fields form(*format, path);
  if (form.text("type").value_or("") != "json_schema") {
    throw wrongField(path + ".type", "\"json_schema\"");
  }
  holdToSchema(form.need("schema", "a JSON schema"), path, request);
}

ReplyRequest readConversation(const Fields& fields) {
  ReplyRequest request;
  readMessages(fields, &request);
  ToolList tools;
  readTools(fields, &tools);
  readToolChoice(fields, &tools, &request);
  readThinking(fields, &request);
  return request;
}

}  // namespace

ReplyRequest readMessagesRequest(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request = readConversation(fields);
  request.stream = fields.boolean("stream").value_or(false);
  (void)fields.need("max_tokens", "the most tokens of the reply");
  request.max_tokens = readMostTokens(fields, "max_tokens");
  readSampling(fields, &request);
  readStop(fields, "stop_sequences", &request);
  readForm(fields, "output_format", &request);
  const Json* const output = fields.find("output_config");
  if (output != nullptr) {
    readForm(Fields(*output, "output_config"), "output_config.format", &request);
  }
  return request;
}

ReplyRequest readCountRequest(const Json& body, const ModelFacts&) {
  return readConversation(Fields(body, ""));
}

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
    const Json input = tryJson(text_);
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
