// Converts a request's sampling fields to library options.
#pragma once

#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/message.h"
#include "settings.h"

namespace cli {

/// `base` gives the defaults. `max_tokens` is per reply; `choice`: index of the reply to one prompt.
Settings samplingOf(const ReplyRequest& request, const Settings& base, uint32_t max_tokens,
                    uint32_t choice);

// Request fields shared by several protocols.

constexpr int64_t kMostReplyTokens = INT32_MAX;

template <typename Number>
std::optional<Number> as(const std::optional<int64_t>& value) {
  return value ? std::optional<Number>(static_cast<Number>(*value)) : std::nullopt;
}

/// A number of tokens; -1: unlimited. nullopt: absent.
std::optional<uint32_t> readMostTokens(const Fields& fields, const char* name);
/// The number of tokens after which a thought is closed.
void readThoughtLimit(const Fields& fields, const char* name, ReplyRequest* request);
/// "suffix": the text after the gap; the prompts are the text before it.
void readSuffix(const Fields& fields, ReplyRequest* request);
/// max_thought_tokens, temperature, top_p, min_p, top_k (-1: off), repeat_penalty, the other penalties and seed.
void readSampling(const Fields& fields, ReplyRequest* request);
/// A text or a list of texts that end the reply.
void readStop(const Fields& fields, const char* name, ReplyRequest* request);
/// Constrains the reply to a schema given as an object or true.
void holdToSchema(const Json& schema, const std::string& param, ReplyRequest* request);
void holdToAnyObject(const std::string& param, ReplyRequest* request);
/// Refuses a field with an effect; false, "" and empty lists are accepted.
void refuseField(const Fields& fields, const char* name, const char* reason);

/// A text, a list of texts, a list of ids or a list of such lists; at most `most` of them.
std::vector<RawPrompt> readPrompts(const Json& value, const std::string& name, uint32_t n_vocab,
                                   size_t most);
/// Texts or ids to embed, at most as many as OpenAI takes.
std::vector<RawPrompt> readEmbedInputs(const Fields& fields, const char* name,
                                       const ModelFacts& facts);
/// Reads ids from a JSON list.
std::vector<int32_t> readIds(const Json& list, const std::string& name, uint32_t n_vocab);

/// Converts a list [{"id", "scale"}] to the session option "adapters". Missing adapters are off. Throws ApiError.
std::string readAdapters(const Json& list, const std::string& name);

}  // namespace cli
