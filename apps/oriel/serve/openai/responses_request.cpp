#include "serve/openai/responses_request.h"

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/tool_fields.h"
#include "serve/request_fields.h"
#include "serve/tool_list.h"

namespace cli {
namespace {

/// Consecutive items of one assistant message: its thought, text and calls.
class ItemReader {
 public:
  explicit ItemReader(ReplyRequest* request) : messages_(request->messages) {}

  void read(const Json& item, const std::string& path) {
    const Fields fields(item, path);
    const std::string type = fields.text("type").value_or("message");
    if (type == "message") {
      readMessage(fields);
    } else if (type == "function_call" || type == "custom_tool_call") {
      readCall(fields, type == "custom_tool_call");
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      flush();
      messages_.push_back(
          resultMessage(idOf(fields), "", readContent(fields, "output").value_or("")));
    } else if (type == "reasoning") {
      readThought(fields);
    } else if (type == "item_reference") {
      throw ApiError{400,
                     path + " names an item that is stored, and nothing is stored here: send it",
                     path, "unsupported_parameter", 0};
    } else {
      throw ApiError{400,
                     path + " is of the type " + type.substr(0, 64) +
                         ", which runs elsewhere: send messages, function calls and their outputs",
                     path, "unsupported_content", 0};
    }
  }

  void flush() {
    if (text_ || !calls_.empty()) {
      messages_.push_back(assistantMessage(text_, thought_, calls_));
    }
    text_.reset();
    thought_.clear();
    calls_.clear();
  }

 private:
  static std::string idOf(const Fields& fields) {
    const Json& id = fields.need("call_id", "the id of the call");
    return id.is_string() ? id.get<std::string>()
                          : throw wrongField(fields.nameOf("call_id"), "a text");
  }

  void readMessage(const Fields& fields) {
    const Json& role = fields.need("role", "system, user or assistant");
    const std::string name = role.is_string() ? role.get<std::string>() : "";
    if (name == "user") {
      if (auto message = readUserMessage(fields, "content"); message) {
        flush();
        messages_.push_back(std::move(*message));
        return;
      }
    }
    const std::optional<std::string> text = readContent(fields, "content");
    if (name == "assistant") {
      if (text_ || !calls_.empty()) {
        flush();
      }
      text_ = text.value_or("");
      return;
    }
    flush();
    if (name != "user" && name != "system" && name != "developer") {
      throw wrongField(fields.nameOf("role"), "system, developer, user or assistant");
    }
    if (!text) {
      throw wrongField(fields.nameOf("content"), "a text or a list of parts");
    }
    messages_.push_back(plainMessage(name == "developer" ? "system" : name, *text));
  }

  void readCall(const Fields& fields, bool is_text) {
    PastCall call;
    call.id = idOf(fields);
    call.name = fields.text("name").value_or("");
    if (call.name.empty()) {
      throw wrongField(fields.nameOf("name"), "the name of a function");
    }
    call.arguments = is_text ? textToolArguments(fields.text("input").value_or(""))
                             : pastArguments(fields.find("arguments"));
    calls_.push_back(std::move(call));
  }

  void readThought(const Fields& fields) {
    if (text_ || !calls_.empty()) {
      flush();
    }
    for (const char* name : {"content", "summary"}) {
      if (thought_.empty()) {
        thought_ = readContent(fields, name).value_or("");
      }
    }
  }

  std::vector<ChatMessage>& messages_;
  std::optional<std::string> text_;
  std::string thought_;
  std::vector<PastCall> calls_;
};

void readInput(const Fields& fields, ReplyRequest* request) {
  const Json& input = fields.need("input", "a text or a list of items");
  const std::optional<std::string> instructions = fields.text("instructions");
  if (instructions && !instructions->empty()) {
    request->messages.push_back(plainMessage("system", *instructions));
  }
  if (input.is_string()) {
    request->messages.push_back(plainMessage("user", input.get<std::string>()));
    return;
  }
  if (!input.is_array() || input.empty() || input.size() > kMostMessages) {
    throw wrongField("input", "a text or a list of at least one item");
  }
  ItemReader items(request);
  for (size_t i = 0; i < input.size(); ++i) {
    items.read(input[i], "input[" + std::to_string(i) + "]");
  }
  items.flush();
}

void readTextFormat(const Fields& fields, ReplyRequest* request) {
  const Json* const text = fields.find("text");
  const Json* const format = text != nullptr ? Fields(*text, "text").find("format") : nullptr;
  if (format == nullptr) {
    return;
  }
  const Fields form(*format, "text.format");
  const std::string type = form.text("type").value_or("");
  const Json* const schema = form.find("schema");
  if (type == "json_schema" && schema != nullptr) {
    holdToSchema(*schema, "text.format", request);
    request->held.strict = form.boolean("strict").value_or(false);
  } else if (type == "json_schema" || type == "json_object") {
    holdToAnyObject("text.format", request);
  } else if (type != "text") {
    throw wrongField("text.format.type", "\"text\", \"json_object\" or \"json_schema\"");
  }
}

Json given(const Fields& fields, const char* name, const Json& otherwise) {
  const Json* const value = fields.find(name);
  return value != nullptr ? *value : otherwise;
}

/// Fields repeated in the response.
Json echoOf(const Fields& fields) {
  Json echo;
  echo["instructions"] = given(fields, "instructions", Json());
  echo["max_output_tokens"] = given(fields, "max_output_tokens", Json());
  echo["parallel_tool_calls"] = given(fields, "parallel_tool_calls", true);
  echo["reasoning"] = given(fields, "reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  echo["temperature"] = given(fields, "temperature", 1.0);
  echo["text"] = given(fields, "text", {{"format", {{"type", "text"}}}});
  echo["tool_choice"] = given(fields, "tool_choice", "auto");
  echo["tools"] = given(fields, "tools", Json::array());
  echo["top_p"] = given(fields, "top_p", 1.0);
  echo["metadata"] = given(fields, "metadata", Json::object());
  return echo;
}

}  // namespace

ReplyRequest readResponsesRequest(const Json& body, const ModelFacts&) {
  const Fields fields(body, "");
  ReplyRequest request;
  refuseField(fields, "previous_response_id",
              "nothing is stored: send the whole conversation as input");
  refuseField(fields, "conversation", "nothing is stored: send the whole conversation as input");
  refuseField(fields, "background", "replies come with their request: leave it out");
  refuseField(fields, "prompt", "nothing is stored: give instructions and input");
  readInput(fields, &request);
  request.stream = fields.boolean("stream").value_or(false);
  request.max_tokens = readMostTokens(fields, "max_output_tokens");
  readSampling(fields, &request);
  readStop(fields, "stop", &request);
  readTextFormat(fields, &request);
  readToolFields(fields, kResponseTools, &request);
  readReasoning(fields, &request);
  readTemplateVariables(fields, &request);
  request.echo = echoOf(fields);
  return request;
}

}  // namespace cli
