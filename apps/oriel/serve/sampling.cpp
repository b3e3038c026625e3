#include "serve/request_fields.h"

#include <algorithm>

#include "options.h"

namespace cli {
namespace {

/// Replaces a client's seed 0, because 0 means the clock in Oriel. Unlikely to be used by a client.
constexpr uint64_t kSeedZero = 0x9e3779b97f4a7c15;

/// The library's limit.
constexpr double kLeastTopP = 0.0001;

void setNumbers(const ReplyRequest& request, Settings* options) {
  const auto take = [options](const char* name, const std::optional<double>& value) {
    if (value) {
      options->setFloat(name, *value);
    }
  };
  if (request.temperature) {
    options->erase("greedy");
  }
  take("temperature", request.temperature);
  take("min_p", request.min_p);
  take("repeat_penalty", request.repeat_penalty);
  take("presence_penalty", request.presence_penalty);
  take("frequency_penalty", request.frequency_penalty);
  if (request.top_p == 0.0) {
    options->set("greedy", "true");
  } else if (request.top_p) {
    options->setFloat("top_p", std::max(*request.top_p, kLeastTopP));
  }
  if (request.top_k) {
    options->set("top_k", *request.top_k);
  }
}

}  // namespace

Settings samplingOf(const ReplyRequest& request, const Settings& base, uint32_t max_tokens,
                    uint32_t choice) {
  Settings options = base;
  setNumbers(request, &options);
  uint64_t seed = request.seed.value_or(options.number("seed"));
  if (request.seed && seed == 0) {
    seed = kSeedZero;
  }
  options.set("seed", nextSeed(seed, choice));
  options.set("max_tokens", max_tokens);
  if (request.max_thought_tokens) {
    options.set("max_thought_tokens", *request.max_thought_tokens);
  }
  for (const auto& [id, bias] : request.biases) {
    options.add("logit_bias",
                std::to_string(id) + ":" + (bias <= -100 ? "-inf" : formatted("%.9g", bias)));
  }
  for (const std::string& text : request.stop) {
    options.add("stop", text);
  }
  if (request.logprobs) {
    options.set("top_logprobs", std::max(request.top_logprobs, 1u));
  }
  if (!request.held.schema.empty()) {
    options.set("schema", request.held.schema);
  }
  if (!request.held.grammar.empty()) {
    options.set("grammar", request.held.grammar);
  }
  if (request.held.strict) {  // OpenAI's rule: unlisted members are not allowed
    options.erase("open_objects");
  }
  options.set("tool_choice", request.tool_choice);
  return options;
}

}  // namespace cli
