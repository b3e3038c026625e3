// One measured run, repeated by `oriel bench`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_handle.h"
#include "output.h"

namespace cli {

struct BenchLoad {
  uint32_t prefill = 64;
  uint32_t decode = 64;
  uint64_t depth = 0;  ///< assumed tokens before the prompt
};

struct BenchRun {
  double prefill_tokens_per_s = 0;
  std::optional<double> decode_tokens_per_s;
  std::optional<double> time_to_first_token_ms;
  uint64_t expert_hits = 0;  ///< while decoding with experts on file: experts found in a slot, ...
  uint64_t expert_misses = 0;  ///< ... and experts that were read
};

using BenchClock = std::chrono::steady_clock;

double secondsSince(BenchClock::time_point start);

/// Ids without repetition, equal on all machines.
std::vector<int32_t> arbitraryIds(size_t count, uint32_t n_vocab);

oriel::ReplyOptions greedyOptions(uint32_t max_tokens);

/// Session settings that assume `depth` earlier tokens.
Settings atDepth(uint64_t depth);

/// The prompt (the first of `ids`), then decoding, in a new session.
BenchRun runBenchOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids);

// `oriel bench`'s figures on starting and stopping.

/// {total, from_cache (null: unknown to the driver), compile_ms}
Json pipelineFields(const Json& info);
/// A line; empty without pipelines.
std::string describePipelines(const Json& fields);

/// Repeatedly starts appending `ids` and cancels from another thread, each time a little later. {median, worst}
/// milliseconds from the request to the return of the call.
Json cancelLatency(const std::vector<int32_t>& ids, uint32_t times, Session* session);
std::string describeCancels(const Json& fields);

// Several sessions of one model that generate together.

/// Reads the prompt (the first of `ids`) in each session, then decodes with one call. Returns tokens per second of all
/// together, counted from the last session's first token.
double runTogetherOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids);

// Tokenises the beginning of a text without reading the rest.

/// The first `most` tokens of the whole text; 0: all tokens. Throws Failure.
std::vector<int32_t> firstTokens(TextInput* input, const Model& model, size_t most);

}  // namespace cli
