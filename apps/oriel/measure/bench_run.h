// One measured run, as `oriel bench` repeats it.
#pragma once

#include <chrono>
#include <optional>

#include "model_handle.h"

namespace cli {

struct BenchLoad {
  uint32_t prefill = 64;
  uint32_t decode = 64;
  uint64_t depth = 0;  ///< tokens that the session is taken to hold before the prompt
};

struct BenchRun {
  double prefill_tokens_per_s = 0;
  std::optional<double> decode_tokens_per_s;
  std::optional<double> time_to_first_token_ms;
  uint64_t expert_hits = 0;  ///< while decoding: of experts on file those that were in a slot, ...
  uint64_t expert_misses = 0;  ///< ... and those that were read
};

using BenchClock = std::chrono::steady_clock;

double secondsSince(BenchClock::time_point start);

/// Ids that repeat nothing and are the same everywhere.
std::vector<int32_t> arbitraryIds(size_t count, uint32_t n_vocab);

oriel::ReplyOptions greedyOptions(uint32_t max_tokens);

/// Of a session that is taken to hold so many tokens.
Settings atDepth(uint64_t depth);

/// The prompt (the first of `ids`), then decoding, in a new session.
BenchRun runBenchOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids);

}  // namespace cli
