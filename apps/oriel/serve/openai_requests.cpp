#include "serve/protocols.h"

#include <cmath>
#include <cstdlib>

#include "serve/api_error.h"
#include "serve/message.h"
#include "serve/request_fields.h"

namespace cli {
namespace {

/// The object with a tool's or a choice's own fields.
Fields insideOf(const Json& value, const std::string& path, const char* type,
                const ToolStyle& style) {
  const Fields outer(value, path);
  return style.wrapped ? Fields(outer.need(type, "an object with a name"), outer.nameOf(type))
                       : outer;
}

std::string typeOf(const Fields& fields) { return fields.text("type").value_or("function"); }

std::string textOr(const Fields& fields, const char* name, const char* otherwise) {
  return fields.text(name).value_or(otherwise);
}

/// The schema of a custom tool's text.
Json inputSchema(const Fields& custom) {
  Json schema = {{"type", "string"}};
  const Json* const given = custom.find("format");
  if (given == nullptr) {
    return schema;
  }
  const Fields format(*given, custom.nameOf("format"));
  if (format.text("type").value_or("text") == "text") {
    return schema;
  }
  const Json* const inner = format.find("grammar");
  const Fields grammar(inner != nullptr ? *inner : *given, custom.nameOf("format"));
  if (grammar.text("syntax").value_or("") != "regex") {
    throw ApiError{400,
                   custom.nameOf("format") +
                       " is a grammar that is not taken here: give \"syntax\": \"regex\", or none",
                   custom.nameOf("format"), "unsupported_parameter", 0};
  }
  schema["pattern"] = "^(?:" + grammar.text("definition").value_or("") + ")$";
  return schema;
}

void readTool(const Json& tool, const std::string& path, const ToolStyle& style, ToolList* tools) {
  const std::string type = typeOf(Fields(tool, path));
  if (type == "custom") {
    const Fields custom = insideOf(tool, path, "custom", style);
    tools->addText(style.wrapped ? path + ".custom" : path, textOr(custom, "name", ""),
                   textOr(custom, "description", ""), inputSchema(custom));
    return;
  }
  if (type != "function") {
    throw ApiError{400,
                   path + ".type is " + type.substr(0, 64) +
                       ", which runs elsewhere: give tools of the types function and custom",
                   path + ".type", "unsupported_tool", 0};
  }
  const Fields function = insideOf(tool, path, "function", style);
  const std::string name = textOr(function, "name", "");
  const std::string own_path = style.wrapped ? path + ".function" : path;
  const std::string description = textOr(function, "description", "");
  const Json* const parameters = function.find("parameters");
  const bool strict = function.boolean("strict").value_or(false);
  const Json made = functionTool(name, description, parameters != nullptr ? *parameters : Json(),
                                 strict, own_path + ".parameters");
  tools->add(own_path, name, style.wrapped ? tool : made);
}

std::string chosenName(const Json& choice, const std::string& path, const ToolStyle& style) {
  const std::string type = typeOf(Fields(choice, path));
  if (type != "function" && type != "custom") {
    throw wrongField(path + ".type", "\"function\", \"custom\" or \"allowed_tools\"");
  }
  return textOr(insideOf(choice, path, type.c_str(), style), "name", "");
}

CallChoice choiceOf(const std::string& word, const std::string& param) {
  if (word == "auto") {
    return CallChoice::kAuto;
  }
  if (word == "required") {
    return CallChoice::kRequired;
  }
  if (word == "none") {
    return CallChoice::kNone;
  }
  throw wrongField(param, "\"auto\", \"none\", \"required\" or a function");
}

/// {"type": "allowed_tools", ...}: restricts the callable tools.
CallChoice readAllowed(const Json& choice, const ToolStyle& style, ToolList* tools) {
  constexpr char kPath[] = "tool_choice";
  const Fields allowed = insideOf(choice, kPath, "allowed_tools", style);
  const Json& list = allowed.need("tools", "a list of tools");
  if (!list.is_array()) {
    throw wrongField(allowed.nameOf("tools"), "a list of tools");
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    names.push_back(
        chosenName(list[i], allowed.nameOf("tools") + "[" + std::to_string(i) + "]", style));
  }
  tools->keepOnly(names, allowed.nameOf("tools"));
  return choiceOf(textOr(allowed, "mode", "auto"), allowed.nameOf("mode"));
}

CallChoice readChoice(const Json* choice, const ToolStyle& style, ToolList* tools) {
  if (choice == nullptr) {
    return CallChoice::kAuto;
  }
  if (!choice->is_object()) {
    return choiceOf(choice->is_string() ? choice->get<std::string>() : "", "tool_choice");
  }
  if (typeOf(Fields(*choice, "tool_choice")) == "allowed_tools") {
    return readAllowed(*choice, style, tools);
  }
  const std::string name = chosenName(*choice, "tool_choice", style);
  if (!tools->empty()) {
    tools->keepOnly({name}, style.wrapped ? "tool_choice.function.name" : "tool_choice.name");
  }
  return CallChoice::kRequired;
}

}  // namespace

void readToolFields(const Fields& fields, const ToolStyle& style, ReplyRequest* request) {
  for (const char* old : {"functions", "function_call"}) {
    const Json* const value = fields.find(old);
    const bool says_nothing =
        value == nullptr || *value == Json::array() || *value == "auto" || *value == "none";
    if (!says_nothing) {
      throw ApiError{400, std::string(old) + " is not supported: give tools and tool_choice", old,
                     "unsupported_parameter", 0};
    }
  }
  ToolList tools;
  const Json* const list = fields.find("tools");
  if (list != nullptr && !list->is_array()) {
    throw wrongField("tools", "a list of at most 128 tools");
  }
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    readTool((*list)[i], "tools[" + std::to_string(i) + "]", style, &tools);
  }
  const CallChoice choice = readChoice(fields.find("tool_choice"), style, &tools);
  tools.choose(choice, "tool_choice", request);
  request->several_calls = fields.boolean("parallel_tool_calls").value_or(true);
}

namespace {

std::string roleOf(const Fields& fields) {
  const Json& value = fields.need("role", "system, user, assistant or tool");
  std::string role = value.is_string() ? value.get<std::string>() : "";
  for (const char* known : {"system", "user", "assistant", "tool"}) {
    if (role == known) {
      return role;
    }
  }
  if (role == "developer" || role == "function") {
    return role == "function" ? "tool" : "system";
  }
  throw wrongField(fields.nameOf("role"), "system, developer, user, assistant or tool");
}

ChatMessage readMessage(const Json& value, const std::string& path) {
  const Fields fields(value, path);
  const std::string role = roleOf(fields);
  if (role == "user") {
    if (const auto message = readUserMessage(fields, "content"); message) {
      return *message;
    }
  }
  const std::optional<std::string> text = readContent(fields, "content");
  if (role == "assistant") {
    return assistantMessage(text, fields.text("reasoning_content").value_or(""),
                            readPastCalls(fields));
  }
  if (role == "tool") {
    return resultMessage(fields.text("tool_call_id").value_or(""), fields.text("name").value_or(""),
                         text.value_or(""));
  }
  if (!text) {
    throw wrongField(fields.nameOf("content"), "a text or a list of parts");
  }
  return plainMessage(role, *text);
}

}  // namespace

std::vector<ChatMessage> readChatMessages(const Json& list) {
  if (!list.is_array() || list.empty() || list.size() > kMostMessages) {
    throw wrongField("messages", "a list of at least one message");
  }
  std::vector<ChatMessage> messages;
  messages.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    messages.push_back(readMessage(list[i], "messages[" + std::to_string(i) + "]"));
  }
  return messages;
}

namespace {

constexpr int64_t kMostChoices = 16;
constexpr size_t kMostPrompts = 128;
/// The library's limit.
constexpr size_t kMostBiases = 1024;

void readBiases(const Fields& fields, uint32_t n_vocab, ReplyRequest* request) {
  const Json* const value = fields.find("logit_bias");
  if (value == nullptr) {
    return;
  }
  if (!value->is_object() || value->size() > kMostBiases) {
    throw wrongField("logit_bias", "an object of at most 1024 ids with numbers from -100 to 100");
  }
  for (const auto& [id, bias] : value->items()) {
    const bool digits =
        !id.empty() && id.size() <= 9 && id.find_first_not_of("0123456789") == std::string::npos;
    const long number = digits ? std::strtol(id.c_str(), nullptr, 10) : -1;
    if (number < 0 || number >= static_cast<long>(n_vocab)) {
      throw wrongField("logit_bias", "keyed by token ids below " + std::to_string(n_vocab));
    }
    const double amount = bias.is_number() ? bias.get<double>() : std::nan("");
    if (!(amount >= -100 && amount <= 100)) {
      throw wrongField("logit_bias", "numbers from -100 to 100");
    }
    request->biases.emplace_back(static_cast<int32_t>(number), amount);
  }
}

void readCommon(const Fields& fields, uint32_t n_vocab, ReplyRequest* request) {
  request->stream = fields.boolean("stream").value_or(false);
  const Json* const stream_options = fields.find("stream_options");
  if (stream_options != nullptr) {
    const Fields options(*stream_options, "stream_options");
    request->include_usage = options.boolean("include_usage").value_or(false);
  }
  request->choices = as<uint32_t>(fields.whole("n", 1, kMostChoices)).value_or(1);
  readSampling(fields, request);
  readStop(fields, "stop", request);
  readBiases(fields, n_vocab, request);
}

void readResponseFormat(const Fields& fields, ReplyRequest* request) {
  const Json* const format = fields.find("response_format");
  if (format == nullptr) {
    return;
  }
  const Fields form(*format, "response_format");
  const std::string type = form.text("type").value_or("");
  const Json* schema = nullptr;
  bool strict = false;
  if (type == "json_object") {
    schema = form.find("schema");
  } else if (type == "json_schema") {
    const Json* const named = form.find("json_schema");
    const Fields holder = named != nullptr ? Fields(*named, "response_format.json_schema") : form;
    schema = holder.find("schema");
    strict = holder.boolean("strict").value_or(false);
  } else if (type != "text") {
    throw wrongField("response_format.type", "\"text\", \"json_object\" or \"json_schema\"");
  }
  if (schema != nullptr) {
    holdToSchema(*schema, "response_format", request);
    request->held.strict = strict;
  } else if (type != "text") {
    holdToAnyObject("response_format", request);
  }
}

/// llama.cpp's fields next to the messages.
void readGrammar(const Fields& fields, ReplyRequest* request) {
  const std::string grammar = fields.text("grammar").value_or("");
  const Json* const schema = fields.find("json_schema");
  const bool twice = !grammar.empty() && schema != nullptr;
  if (twice || (request->held.given() && (!grammar.empty() || schema != nullptr))) {
    const char* const name = !grammar.empty() ? "grammar" : "json_schema";
    throw ApiError{400, "response_format, json_schema and grammar exclude each other: give one",
                   name, "invalid_value", 0};
  }
  if (!grammar.empty()) {
    request->held.grammar = grammar;
    request->held.param = "grammar";
  } else if (schema != nullptr) {
    holdToSchema(*schema, "json_schema", request);
  }
}

}  // namespace

void readEffort(const std::optional<std::string>& effort, ReplyRequest* request) {
  if (effort == "none") {
    request->form.thinking = false;
  } else if (effort) {
    request->form.variables = dumped(Json{{"reasoning_effort", *effort}});
  }
}

void readReasoning(const Fields& fields, ReplyRequest* request) {
  if (const Json* const given = fields.find("reasoning")) {
    const Fields reasoning(*given, "reasoning");
    readEffort(reasoning.text("effort"), request);
    readThoughtLimit(reasoning, "max_tokens", request);
  }
}

void readTemplateVariables(const Fields& fields, ReplyRequest* request) {
  const Json* const given = fields.find("chat_template_kwargs");
  if (given == nullptr) {
    return;
  }
  const Fields named(*given, "chat_template_kwargs");
  const std::optional<bool> thinking = named.boolean("enable_thinking");
  request->form.thinking = thinking ? thinking : request->form.thinking;
  Json variables = *given;
  variables.erase("enable_thinking");
  if (!request->form.variables.empty()) {
    const Json effort = jsonFrom(request->form.variables);
    variables.insert(effort.begin(), effort.end());  // existing variables win
  }
  request->form.variables = variables.empty() ? "" : dumped(variables);
}

ReplyRequest readChatRequest(const Json& body, const ModelFacts& facts) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.messages = readChatMessages(fields.need("messages", "the conversation"));
  readCommon(fields, facts.n_vocab, &request);
  const auto most = readMostTokens(fields, "max_completion_tokens");
  const auto older = readMostTokens(fields, "max_tokens");
  request.max_tokens = most ? most : older;
  request.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.whole("top_logprobs", 0, 20);
  if (top && !request.logprobs) {
    throw ApiError{400, "top_logprobs needs logprobs: give \"logprobs\": true", "top_logprobs",
                   "invalid_value", 0};
  }
  request.top_logprobs = as<uint32_t>(top).value_or(0);
  readResponseFormat(fields, &request);
  readGrammar(fields, &request);
  readToolFields(fields, kChatTools, &request);
  readEffort(fields.text("reasoning_effort"), &request);
  readReasoning(fields, &request);
  readTemplateVariables(fields, &request);
  return request;
}

ReplyRequest readCompletionRequest(const Json& body, const ModelFacts& facts) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.is_chat = false;
  request.prompts =
      readPrompts(fields.need("prompt", "a text"), "prompt", facts.n_vocab, kMostPrompts);
  readCommon(fields, facts.n_vocab, &request);
  request.max_tokens = readMostTokens(fields, "max_tokens").value_or(16);  // OpenAI's default
  const auto top = fields.whole("logprobs", 0, 20);
  request.logprobs = top.has_value();
  request.top_logprobs = as<uint32_t>(top).value_or(0);
  refuseField(fields, "echo", "the prompt is not sent back");
  readSuffix(fields, &request);
  const auto best_of = fields.whole("best_of", 1, kMostChoices);
  if (best_of && *best_of != 1) {
    throw ApiError{400, "best_of is not taken here: ask for n choices", "best_of",
                   "unsupported_parameter", 0};
  }
  readResponseFormat(fields, &request);
  readGrammar(fields, &request);
  return request;
}

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
