// Chooses tokens: the best of a step, log-probabilities, and sampling.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "base/choices.h"
#include "base/hash.h"
#include "base/log.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

// The ops that find the best tokens, for executors in host memory. layout.h has the contract.

/// A key with the order of logits; 0 for minus infinity and NaN.
uint32_t topKey(float logit);

void topBlocks(const float* logits, const TopPush& push, uint32_t* keys);
/// Returns all best tokens, up to kTopCapacity.
void topTokens(const float* logits, const TopPush& push, const uint32_t* keys, TopTokens* top);

// The model's log-probabilities of tokens.

/// Log-probabilities of one choice: log-softmax of the model's unchanged logits. Fixed memory.
class Logprobs {
 public:
  static constexpr uint32_t kMostTop = 20;

  /// Computes them for the token `chosen` and the `n_top` most likely tokens. Ties go to the lower id. There are fewer
  /// if other tokens have no probability. NaN counts as minus infinity.
  void compute(const float* logits, uint32_t n_vocab, int32_t chosen, uint32_t n_top);
  float chosen() const { return chosen_; }
  const oriel_token_logprob* top() const { return top_; }
  uint32_t topCount() const { return n_top_; }
  void forget() { *this = Logprobs(); }

 private:
  void offer(int32_t id, float logit, uint32_t n_top);

  oriel_token_logprob top_[kMostTop] = {};
  uint32_t n_top_ = 0;
  float chosen_ = 0;
};

// Chooses the next token from logits.

struct TokenText {
  const char* data = nullptr;
  size_t bytes = 0;
};

/// DRY: a token that would repeat a sequence of the context loses multiplier * base^(length of the sequence -
/// allowed_length) of its logit.
struct DryOptions {
  static constexpr uint32_t kMostBreakerBytes = 32;

  float multiplier = 0.0f;      ///< 0: off
  float base = 1.75f;           ///< >= 1
  uint32_t allowed_length = 2;  ///< tokens; shorter sequences may be repeated
  uint32_t window = 256;        ///< number of tokens to search; at most SamplerState::kRecentTokens
  /// Texts of at most kMostBreakerBytes. A sequence does not continue across a token that ends with one. Only start()
  /// reads them.
  const char* const* breakers = nullptr;
  uint32_t n_breakers = 0;                                       ///< at most kMostStops
  TokenText (*text_of)(int32_t id, const void* user) = nullptr;  ///< null: no breakers
  const void* text_user = nullptr;
};

/// Resolved options: zeros have no special meaning.
struct SamplerOptions {
  bool greedy = false;
  float temperature = 0.7f;      ///< > 0
  uint32_t top_k = 40;           ///< UINT32_MAX: all
  float top_p = 0.95f;           ///< 1: all
  float min_p = 0.05f;           ///< <= 0: off
  float typical_p = 1.0f;        ///< 1: off
  float top_n_sigma = 0.0f;      ///< 0: off
  float xtc_probability = 0.0f;  ///< 0: off
  float xtc_threshold = 0.1f;    ///< above 0.5: off
  DryOptions dry;
  float repeat_penalty = 1.0f;     ///< 1: off
  float presence_penalty = 0.0f;   ///< 0: off
  float frequency_penalty = 0.0f;  ///< 0: off
  uint32_t repeat_window =
      64;  ///< tokens that the three look back; at most SamplerState::kRecentTokens
  /// Only start() reads them; at most Sampler::kMaxBiases. Finite or -INFINITY. Several biases of one token add up.
  const LogitBias* biases = nullptr;
  uint32_t n_biases = 0;
  uint64_t seed = 0;
};

/// The state of a sampler between tokens.
struct SamplerState {
  static constexpr uint32_t kRecentTokens = 256;
  int32_t recent[kRecentTokens] = {};
  uint64_t n_recent =
      0;  ///< tokens accepted so far; the latest is at (n_recent - 1) % kRecentTokens
  uint64_t random = 0;
};

/// Adjusts logits, and then chooses among them: top-n-sigma, top-k, typical, top-p, min-p, XTC (all on the
/// probabilities before temperature, as in other runtimes), temperature, draw. The same seed and logits give the same
/// tokens on every platform with IEEE doubles and an exp that is correctly rounded to within its last bits.
///
/// Adjustments, in this order:
/// - Repeat penalty for tokens of the repetition window: divides positive logits, multiplies others.
/// - Presence penalty for tokens of the window: subtracted once. Frequency penalty: subtracted once per occurrence.
/// - DRY: subtracted.
/// - Bias: added.
/// - Mask: tokens that it excludes get minus infinity.
///
/// Choices:
/// - Top-n-sigma keeps logits of at least the best less n standard deviations of all logits above minus infinity.
/// - Typical keeps the tokens whose surprise is nearest to the entropy, up to a total probability of typical_p.
/// - XTC removes, with its probability, all tokens of at least its threshold except the least likely of them.
class Sampler {
 public:
  static constexpr uint32_t kMaxBiases = 1024;
  /// No token.
  static constexpr int32_t kNone = -1;

  /// Takes its working memory from `arena`, permanently.
  void init(uint32_t n_vocab, Arena* arena);
  /// Sets the history that the sampler reads and writes. It must outlive the sampler. After changing it, call start().
  void attach(SamplerState* state) { state_ = state; }
  const SamplerState* state() const { return state_; }
  /// Starts without a mask and without held-back tokens.
  void start(const SamplerOptions& options);
  /// Adds a token of the context to the history for penalties.
  void accept(int32_t id);
  /// Removes biases and penalties. The owner keeps the history.
  void forget();

  /// Sets the mask for later choices: id i is bit i % 32 of word i / 32; 1: allowed. Null: all are allowed. Every
  /// choice reads the mask, so it must stay valid.
  void setMask(const uint32_t* mask) { mask_ = mask; }
  /// Tokens that must not be chosen during hold(true), even if the mask allows them.
  void holdBack(int32_t id) { held_back_[static_cast<uint32_t>(id) / 32] |= bitOf(id); }
  void hold(bool on) { holds_ = on; }

  /// NaN counts as minus infinity. Ties go to the lower id. If no logit is above minus infinity: the lowest id that
  /// mask and bias allow; kNone: they forbid all.
  int32_t sample(const float* logits);
  /// Room for n_vocab floats, used by sample(). The caller may use it until then.
  void* room() const {
    static_assert(sizeof(Candidate) >= sizeof(float), "a logit for each token");
    return candidates_;
  }
  /// True if these best tokens give the same choice as all logits. Every token that may be drawn must be among them:
  /// their adjusted logits must be at least the last one's unadjusted logit, which is a limit for all other tokens, and
  /// no adjustment may raise another token.
  bool suffices(const TopTokens& top);
  /// True if the best token is always chosen.
  bool takesTheBest() const {
    return options_.greedy && !penalises() && n_biases_ == 0 && !masked();
  }
  /// The same token as sample() of all logits, if these suffice.
  int32_t sample(const TopTokens& top);

 private:
  /// Limit of candidates. With more, sums would depend on the order of candidates.
  static constexpr uint32_t kMostTopK = 64;
  static_assert(kMostTopK <= kTopCapacity, "all of them");

  struct Breaker {
    char text[DryOptions::kMostBreakerBytes];
    uint32_t bytes;
  };
  struct Candidate {
    float logit;
    int32_t id;
    bool operator<(const Candidate& other) const {
      return logit > other.logit || (logit == other.logit && id < other.id);
    }
  };
  /// The adjustment of one token's logit.
  struct Adjustment {
    int32_t id;
    uint32_t repeated;  ///< 1: apply the repeat penalty
    float shift;        ///< other penalties and bias in one value; a downward shift never rounds up
  };
  static uint32_t bitOf(int32_t id) { return 1u << (static_cast<uint32_t>(id) % 32); }
  bool penalises() const {
    return options_.repeat_penalty != 1.0f || options_.presence_penalty != 0.0f ||
           options_.frequency_penalty != 0.0f || options_.dry.multiplier != 0.0f;
  }
  bool spreads() const { return options_.top_n_sigma > 0.0f && !options_.greedy; }
  bool masked() const { return mask_ != nullptr || holds_; }
  uint32_t topK() const;
  void copyBiases(const SamplerOptions& options);
  void copyBreakers(const DryOptions& options);
  /// The token accepted `back` tokens before the latest.
  int32_t recent(uint32_t back) const {
    return state_->recent[(state_->n_recent - 1 - back) % SamplerState::kRecentTokens];
  }
  /// Tokens of the windows with their penalties, by id.
  uint32_t penalties(Adjustment* out) const;
  // DRY: sampler_dry.cpp.
  /// lengths[i]: length of the sequence that the token recent(i) would continue.
  void repeatedLengths(uint32_t* lengths, uint32_t n) const;
  uint32_t unbrokenTokens(uint32_t n) const;
  float dryPenalty(uint32_t length) const;
  /// Fills adjustments_, unless they are up to date.
  void prepare();
  const Adjustment* adjustmentOf(int32_t id) const;
  float adjusted(float logit, const Adjustment& by) const;
  float adjusted(const TopToken& token) const;
  uint32_t allowedWord(uint32_t word) const;
  bool allowed(int32_t id) const {
    return (allowedWord(static_cast<uint32_t>(id) / 32) & bitOf(id)) != 0;
  }
  int32_t lowestAllowed() const;
  class Best;
  void offerAll(const float* logits, uint32_t begin, uint32_t end, Best* best) const;
  void offerAllowed(const float* logits, uint32_t begin, uint32_t end, Best* best) const;
  /// Moves the k best, unordered, to the front of candidates_. Fewer if other logits are minus infinity.
  uint32_t best(const float* logits, uint32_t k);
  // Choosing.
  class Choice;
  /// The lower limit of logits for top-n-sigma.
  double leastBySigma(const float* logits) const;
  /// Chooses among candidates_, the k best.
  int32_t draw(uint32_t n);
  double uniform();

  SamplerOptions options_;
  Candidate* candidates_ = nullptr;
  Adjustment* adjustments_ = nullptr;  ///< by id, each token once
  Adjustment* biases_ = nullptr;
  uint32_t* held_back_ = nullptr;  ///< a mask of tokens, 1: held back
  const uint32_t* mask_ = nullptr;
  bool holds_ = false;
  bool prepared_ = false;
  uint32_t n_adjustments_ = 0;
  uint32_t n_biases_ = 0;
  uint32_t n_breakers_ = 0;
  uint32_t n_vocab_ = 0;
  double least_by_sigma_ = 0;
  Breaker breakers_[kMostStops] = {};
  SamplerState* state_ = nullptr;
};

}  // namespace oriel_internal
