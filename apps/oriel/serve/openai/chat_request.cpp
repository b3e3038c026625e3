#include "serve/openai/chat_request.h"

#include <cmath>
#include <cstdlib>

#include "serve/api_error.h"
#include "serve/openai/chat_messages.h"
#include "serve/openai/tool_fields.h"
#include "serve/request_fields.h"

namespace cli {
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
    const Json effort = Json::parse(request->form.variables);
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

}  // namespace cli
