// Chooses the next token from logits.
#pragma once

#include <cstdint>

#include "base/arena.h"

namespace oriel {

/// Resolved options: no zeros that mean something else.
struct SamplerOptions {
  bool greedy = false;
  float temperature = 0.7f;    ///< > 0
  uint32_t top_k = 40;         ///< UINT32_MAX: all
  float top_p = 0.95f;         ///< 1: all
  float min_p = 0.05f;         ///< <= 0: off
  float repeat_penalty = 1.0f; ///< 1: off
  uint64_t seed = 0;
};

/// What a sampler remembers between tokens.
struct SamplerState {
  static constexpr uint32_t kRecentTokens = 64;
  int32_t recent[kRecentTokens] = {};
  uint64_t n_recent = 0;  ///< tokens accepted so far; the latest is at (n_recent - 1) % kRecentTokens
  uint64_t random = 0;
};

/// Order: repetition penalty, top-k, top-p, min-p (both on the probabilities before temperature, as
/// other runtimes do), temperature, draw. Same seed, same logits, same tokens, on every platform with
/// IEEE doubles and a correctly rounded exp to within its last bits.
class Sampler {
 public:
  /// Takes its working memory from `arena`, now and for good.
  void init(uint32_t n_vocab, Arena* arena);
  void start(const SamplerOptions& options);
  /// Remembers a token of the context for the repetition penalty.
  void accept(int32_t id);
  void forget() { state_ = SamplerState(); }
  const SamplerState& state() const { return state_; }
  void restore(const SamplerState& state) { state_ = state; }
  /// Not-a-number counts as minus infinity. Ties go to the lower id.
  int32_t sample(const float* logits);

 private:
  struct Candidate {
    float logit;
    int32_t id;
    bool operator<(const Candidate& other) const {
      return logit > other.logit || (logit == other.logit && id < other.id);
    }
  };
  /// Recent tokens with their logits after the penalty; at most kRecentTokens, none without a penalty.
  uint32_t penalised(const float* logits, Candidate* out) const;
  /// The k best, in no order, at the front of candidates_; fewer where the others are minus infinity.
  uint32_t best(const float* logits, uint32_t k);
  double uniform();

  SamplerOptions options_;
  Candidate* candidates_ = nullptr;
  uint32_t n_vocab_ = 0;
  SamplerState state_;
};

}  // namespace oriel
