#include "serve/reply_request.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "serve/api_error.h"
#include "serve/chat_messages.h"
#include "serve/fields.h"

namespace cli {
namespace {

constexpr int64_t kMostChoices = 16;
constexpr size_t kMostPrompts = 128;
constexpr size_t kMostTools = 128;
/// What the library takes.
constexpr size_t kMostStops = 16;
constexpr size_t kMostStopBytes = 256;
constexpr size_t kMostBiases = 1024;

void addStop(const Json& value, const std::string& name, std::vector<std::string>* stop) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.empty() || text.size() > kMostStopBytes || text.find('\0') != std::string::npos) {
    throw wrongField(name, "a text of 1 to 256 bytes, or a list of them");
  }
  stop->push_back(text);
}

void readStop(const Fields& fields, ReplyRequest* request) {
  const Json* const value = fields.find("stop");
  if (value == nullptr) {
    return;
  }
  if (!value->is_array()) {
    addStop(*value, "stop", &request->stop);
    return;
  }
  if (value->size() > kMostStops) {
    throw wrongField("stop", "at most 16 texts");
  }
  for (const Json& one : *value) {
    addStop(one, "stop", &request->stop);
  }
}

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

template <typename Number>
std::optional<Number> as(const std::optional<int64_t>& value) {
  return value ? std::optional<Number>(static_cast<Number>(*value)) : std::nullopt;
}

void readSampling(const Fields& fields, ReplyRequest* request) {
  request->temperature = fields.number("temperature", 0, 2);
  request->top_p = fields.number("top_p", 0, 1);
  request->min_p = fields.number("min_p", 0, 1);
  request->top_k = as<uint32_t>(fields.whole("top_k", 0, 1 << 24));
  request->repeat_penalty = fields.number("repeat_penalty", 0.1, 10);
  request->presence_penalty = fields.number("presence_penalty", -2, 2);
  request->frequency_penalty = fields.number("frequency_penalty", -2, 2);
  request->seed = as<uint64_t>(fields.whole("seed", std::numeric_limits<int64_t>::min(),
                                            std::numeric_limits<int64_t>::max()));
}

void readCommon(const Fields& fields, uint32_t n_vocab, ReplyRequest* request) {
  const Json* const model = fields.find("model");
  if (model != nullptr && !model->is_string()) {
    throw wrongField("model", "a text");
  }
  request->stream = fields.boolean("stream").value_or(false);
  const Json* const stream_options = fields.find("stream_options");
  if (stream_options != nullptr) {
    const Fields options(*stream_options, "stream_options");
    request->include_usage = options.boolean("include_usage").value_or(false);
  }
  request->choices = as<uint32_t>(fields.whole("n", 1, kMostChoices)).value_or(1);
  readSampling(fields, request);
  readStop(fields, request);
  readBiases(fields, n_vocab, request);
}

constexpr int64_t kMostReplyTokens = std::numeric_limits<int32_t>::max();

/// Their names in `names`.
Json readTools(const Json& list, std::vector<std::string>* names) {
  if (!list.is_array() || list.size() > kMostTools) {
    throw wrongField("tools", "a list of at most 128 tools");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const Fields tool(list[i], "tools[" + std::to_string(i) + "]");
    const std::string type = tool.text("type").value_or("function");
    if (type != "function") {
      throw wrongField(tool.nameOf("type"), "\"function\"");
    }
    const Fields function(tool.need("function", "a function"), tool.nameOf("function"));
    const std::string name = function.text("name").value_or("");
    const bool sound =
        !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || c == '.';
        });
    if (!sound) {
      throw wrongField(function.nameOf("name"), "1 to 64 letters, digits, _, - and dots");
    }
    (void)function.text("description");
    const Json* const parameters = function.find("parameters");
    if (parameters != nullptr && !parameters->is_object()) {
      throw wrongField(function.nameOf("parameters"), "a JSON schema, an object");
    }
    names->push_back(name);
  }
  return list;
}

/// The name that {"type": "function", "function": {"name"}} holds.
std::string chosenName(const Json& choice) {
  const Fields fields(choice, "tool_choice");
  const std::string type = fields.text("type").value_or("function");
  if (type != "function") {
    throw wrongField("tool_choice.type", "\"function\"");
  }
  const Fields function(fields.need("function", "the function to call"), "tool_choice.function");
  return function.text("name").value_or("");
}

void readToolChoice(const Fields& fields, const std::vector<std::string>& names, Json* tools,
                    ReplyRequest* request) {
  const Json* const choice = fields.find("tool_choice");
  const std::string word = choice == nullptr     ? "auto"
                           : choice->is_string() ? choice->get<std::string>()
                                                 : "";
  const bool calls = choice != nullptr && word != "none" && word != "auto";
  if (calls && names.empty()) {
    throw ApiError{400, "tool_choice asks for a call, and there are no tools: give tools",
                   "tool_choice", "invalid_value", 0};
  }
  if (word == "auto") {
    request->tool_choice = "checked";
  } else if (word == "required") {
    request->tool_choice = "required";
  } else if (word == "none") {
    *tools = Json::array();  // what it does not know it cannot call
  } else if (choice->is_object()) {
    const std::string name = chosenName(*choice);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw wrongField("tool_choice.function.name", "the name of one of the tools");
    }
    *tools = Json::array({(*tools)[static_cast<size_t>(found - names.begin())]});
    request->tool_choice = "required";
  } else {
    throw wrongField("tool_choice", "\"auto\", \"none\", \"required\" or a function");
  }
}

void readToolFields(const Fields& fields, ReplyRequest* request) {
  for (const char* old : {"functions", "function_call"}) {
    if (fields.find(old) != nullptr) {
      throw ApiError{400, std::string(old) + " is no longer taken: give tools and tool_choice", old,
                     "unsupported_parameter", 0};
    }
  }
  std::vector<std::string> names;
  const Json* const list = fields.find("tools");
  Json tools = list != nullptr ? readTools(*list, &names) : Json::array();
  readToolChoice(fields, names, &tools, request);
  request->several_calls = fields.boolean("parallel_tool_calls").value_or(true);
  if (tools.empty()) {
    request->tool_choice = "none";
  } else {
    request->form.tools = dumped(tools);
  }
}

void readResponseFormat(const Fields& fields, ReplyRequest* request) {
  const Json* const format = fields.find("response_format");
  if (format == nullptr) {
    return;
  }
  const Fields form(*format, "response_format");
  const std::string type = form.text("type").value_or("");
  if (type == "json_object") {
    request->schema = R"({"type":"object"})";
  } else if (type == "json_schema") {
    const Fields named(form.need("json_schema", "a schema"), "response_format.json_schema");
    const Json& schema = named.need("schema", "a JSON schema");
    if (!schema.is_object()) {
      throw wrongField("response_format.json_schema.schema", "a JSON schema, an object");
    }
    request->schema = dumped(schema);
    request->strict_schema = named.boolean("strict").value_or(false);
  } else if (type != "text") {
    throw wrongField("response_format.type", "\"text\", \"json_object\" or \"json_schema\"");
  }
}

/// How much a model thinks is the template's affair.
void readThinking(const Fields& fields, ReplyRequest* request) {
  const std::optional<std::string> effort = fields.text("reasoning_effort");
  if (effort == "none") {
    request->form.thinking = false;
  }
  const Json* const given = fields.find("chat_template_kwargs");
  Json variables = given != nullptr ? *given : Json::object();
  if (given != nullptr) {
    const Fields named(*given, "chat_template_kwargs");
    const std::optional<bool> thinking = named.boolean("enable_thinking");
    request->form.thinking = thinking ? thinking : request->form.thinking;
    variables.erase("enable_thinking");
  }
  if (effort && effort != "none" && !variables.contains("reasoning_effort")) {
    variables["reasoning_effort"] = *effort;
  }
  request->form.variables = variables.empty() ? "" : dumped(variables);
}

void refuse(const Fields& fields, const char* name, const char* reason) {
  const Json* const value = fields.find(name);
  const bool asked = value != nullptr && *value != false && *value != Json("");
  if (asked) {
    throw ApiError{400, std::string(name) + " is not taken here: " + reason, name,
                   "unsupported_parameter", 0};
  }
}

}  // namespace

ReplyRequest readChatRequest(const Json& body, uint32_t n_vocab) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.messages = readChatMessages(fields.need("messages", "the conversation"));
  readCommon(fields, n_vocab, &request);
  const auto most = fields.whole("max_completion_tokens", 1, kMostReplyTokens);
  const auto older = fields.whole("max_tokens", 1, kMostReplyTokens);
  request.max_tokens = as<uint32_t>(most ? most : older);
  request.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.whole("top_logprobs", 0, 20);
  if (top && !request.logprobs) {
    throw ApiError{400, "top_logprobs needs logprobs: give \"logprobs\": true", "top_logprobs",
                   "invalid_value", 0};
  }
  request.top_logprobs = as<uint32_t>(top).value_or(0);
  readResponseFormat(fields, &request);
  readToolFields(fields, &request);
  readThinking(fields, &request);
  return request;
}

std::vector<RawPrompt> readPrompts(const Json& value, const std::string& name, uint32_t n_vocab) {
  const ApiError wrong =
      wrongField(name, "a text, a list of texts, a list of token ids, or a list of such lists");
  const auto idsOf = [&](const Json& list) {
    RawPrompt prompt;
    prompt.from_ids = true;
    for (const Json& item : list) {
      const std::optional<int64_t> id = wholeOf(item);
      if (!id || *id < 0 || *id >= n_vocab) {
        throw wrongField(name, "token ids from 0 to " + std::to_string(n_vocab - 1));
      }
      prompt.ids.push_back(static_cast<int32_t>(*id));
    }
    return prompt;
  };
  if (value.is_string()) {
    return {{value.get<std::string>(), {}, false}};
  }
  if (!value.is_array() || value.empty()) {
    throw wrong;
  }
  if (value[0].is_number()) {
    return {idsOf(value)};
  }
  if (value.size() > kMostPrompts) {
    throw wrongField(name, "at most 128 texts");
  }
  std::vector<RawPrompt> prompts;
  for (const Json& item : value) {
    if (item.is_string()) {
      prompts.push_back({item.get<std::string>(), {}, false});
    } else if (item.is_array() && !item.empty()) {
      prompts.push_back(idsOf(item));
    } else {
      throw wrong;
    }
  }
  return prompts;
}

ReplyRequest readCompletionRequest(const Json& body, uint32_t n_vocab) {
  const Fields fields(body, "");
  ReplyRequest request;
  request.is_chat = false;
  request.prompts = readPrompts(fields.need("prompt", "a text"), "prompt", n_vocab);
  readCommon(fields, n_vocab, &request);
  request.max_tokens = as<uint32_t>(fields.whole("max_tokens", 1, kMostReplyTokens))
                           .value_or(16);  // as OpenAI has it
  const auto top = fields.whole("logprobs", 0, 20);
  request.logprobs = top.has_value();
  request.top_logprobs = as<uint32_t>(top).value_or(0);
  refuse(fields, "echo", "the prompt is not sent back");
  refuse(fields, "suffix", "give the text in front as the prompt, and no suffix");
  const auto best_of = fields.whole("best_of", 1, kMostChoices);
  if (best_of && *best_of != 1) {
    throw ApiError{400, "best_of is not taken here: ask for n choices", "best_of",
                   "unsupported_parameter", 0};
  }
  readResponseFormat(fields, &request);
  return request;
}

EmbeddingRequest readEmbeddingRequest(const Json& body, uint32_t n_vocab, int64_t n_embd) {
  const Fields fields(body, "");
  EmbeddingRequest request;
  request.inputs = readPrompts(fields.need("input", "a text"), "input", n_vocab);
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    throw wrongField("encoding_format", "\"float\" or \"base64\"");
  }
  request.base64 = format == "base64";
  if (fields.whole("dimensions", 1, INT32_MAX).value_or(n_embd) != n_embd) {
    throw wrongField("dimensions", std::to_string(n_embd) + ", what this model's vectors have");
  }
  return request;
}

}  // namespace cli
