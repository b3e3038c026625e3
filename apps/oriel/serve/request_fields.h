// Fields that requests of several protocols have.
#pragma once

#include <string>
#include <vector>

#include "serve/fields.h"
#include "serve/reply_request.h"

namespace cli {

constexpr int64_t kMostReplyTokens = INT32_MAX;

template <typename Number>
std::optional<Number> as(const std::optional<int64_t>& value) {
  return value ? std::optional<Number>(static_cast<Number>(*value)) : std::nullopt;
}

/// A number of tokens; -1 is no limit. nullopt: the field is absent.
std::optional<uint32_t> readMostTokens(const Fields& fields, const char* name);
/// After how many tokens a thought is closed.
void readThoughtLimit(const Fields& fields, const char* name, ReplyRequest* request);
/// "suffix": what stands behind the gap, in front of which the prompts stand.
void readSuffix(const Fields& fields, ReplyRequest* request);
/// max_thought_tokens, temperature, top_p, min_p, top_k (-1: off), repeat_penalty, the other penalties and seed.
void readSampling(const Fields& fields, ReplyRequest* request);
/// A text or a list of texts that end the reply.
void readStop(const Fields& fields, const char* name, ReplyRequest* request);
/// "schema" by its text: an object, or true.
void holdToSchema(const Json& schema, const std::string& param, ReplyRequest* request);
void holdToAnyObject(const std::string& param, ReplyRequest* request);
/// Refuses a field that asks for something; false, "" and empty lists do not.
void refuseField(const Fields& fields, const char* name, const char* reason);

/// A text, a list of texts, a list of ids or a list of such lists; at most `most` of them.
std::vector<RawPrompt> readPrompts(const Json& value, const std::string& name, uint32_t n_vocab,
                                   size_t most);
/// Texts or ids to embed, at most as many as OpenAI takes.
std::vector<RawPrompt> readEmbedInputs(const Fields& fields, const char* name,
                                       const ModelFacts& facts);
/// Ids as a JSON list has them.
std::vector<int32_t> readIds(const Json& list, const std::string& name, uint32_t n_vocab);

}  // namespace cli
