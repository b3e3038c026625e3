// Chooses the next token from logits.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "shaders/shared/layout.h"

namespace oriel {

/// Resolved options: no zeros that mean something else.
struct SamplerOptions {
  bool greedy = false;
  float temperature = 0.7f;     ///< > 0
  uint32_t top_k = 40;          ///< UINT32_MAX: all
  float top_p = 0.95f;          ///< 1: all
  float min_p = 0.05f;          ///< <= 0: off
  float repeat_penalty = 1.0f;  ///< 1: off
  uint64_t seed = 0;
};

/// What a sampler remembers between tokens.
struct SamplerState {
  static constexpr uint32_t kRecentTokens = 64;
  int32_t recent[kRecentTokens] = {};
  uint64_t n_recent =
      0;  ///< tokens accepted so far; the latest is at (n_recent - 1) % kRecentTokens
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
  /// Tokens, and what it took from their logits.
  void forget();
  const SamplerState& state() const { return state_; }
  void restore(const SamplerState& state) { state_ = state; }
  /// Not-a-number counts as minus infinity. Ties go to the lower id.
  int32_t sample(const float* logits);
  /// Whether these say as much as all logits would. They do for greedy choice and for a top-k of at most
  /// kMostTopK. A penalty of at least 1 can only move recent tokens down, so as many more are enough.
  bool suffices(const TopTokens& top) const;
  /// Whether the best token is taken, whatever came before.
  bool takesTheBest() const { return options_.greedy && options_.repeat_penalty == 1.0f; }
  /// The same token as sample() of all logits, if they suffice.
  int32_t sample(const TopTokens& top);

 private:
  /// Of more, sums would depend on the order in which candidates come.
  static constexpr uint32_t kMostTopK = 64;
  static_assert(kMostTopK + SamplerState::kRecentTokens <= kTopCapacity, "with a penalty, too");

  struct Candidate {
    float logit;
    int32_t id;
    bool operator<(const Candidate& other) const {
      return logit > other.logit || (logit == other.logit && id < other.id);
    }
  };
  uint32_t topK() const;
  /// Tokens that the penalty is for, each once, in order; at most kRecentTokens, none without a penalty.
  uint32_t penalisedIds(int32_t* ids) const;
  float penalised(float logit) const;
  /// The k best, in no order, at the front of candidates_; fewer where the others are minus infinity.
  uint32_t best(const float* logits, uint32_t k);
  /// Chooses among candidates_, the k best.
  int32_t draw(uint32_t n);
  double uniform();

  SamplerOptions options_;
  Candidate* candidates_ = nullptr;
  uint32_t n_vocab_ = 0;
  SamplerState state_;
};

}  // namespace oriel
