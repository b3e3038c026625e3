// Chooses the next token from logits.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "base/choices.h"
#include "base/status.h"
#include "base/wipe.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

struct TokenText {
  const char* data = nullptr;
  size_t bytes = 0;
};

/// DRY: a token that would continue a sequence which the context has already loses
/// multiplier * base^(length of the sequence - allowed_length) of its logit.
struct DryOptions {
  static constexpr uint32_t kMostBreakerBytes = 32;

  float multiplier = 0.0f;      ///< 0: off
  float base = 1.75f;           ///< >= 1
  uint32_t allowed_length = 2;  ///< tokens; shorter sequences may come again
  uint32_t window = 256;        ///< tokens that are looked at; at most SamplerState::kRecentTokens
  /// Texts of at most kMostBreakerBytes: no sequence goes on beyond a token with which one ends. Read by start() only.
  const char* const* breakers = nullptr;
  uint32_t n_breakers = 0;                                       ///< at most kMostStops
  TokenText (*text_of)(int32_t id, const void* user) = nullptr;  ///< null: no breakers
  const void* text_user = nullptr;
};

/// Resolved options: no zeros that mean something else.
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
  /// Read by start() only; at most Sampler::kMaxBiases. Finite or -INFINITY; of one token they add up.
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

/// Adjusts logits, and then chooses among them: top-n-sigma, top-k, typical, top-p, min-p, XTC (all on the probabilities
/// before temperature, as other runtimes do), temperature, draw. The same seed and logits give the same tokens on every
/// platform with IEEE doubles and a correctly rounded exp to within its last bits.
///
/// Adjusting, in this order: a token of the repetition window has its logit divided by the repeat penalty where it is
/// positive, else multiplied by it, and loses the presence penalty and, for each time that it is there, the frequency
/// penalty; a token that DRY punishes loses that; its bias is added; what a mask does not allow is minus infinity.
///
/// - Top-n-sigma keeps logits of at least the best less n standard deviations of all that are above minus infinity.
/// - Typical keeps the tokens whose surprise is nearest to the entropy, until they have probability typical_p together.
/// - XTC leaves out, with its probability, all tokens of at least its threshold but the least likely of them.
class Sampler {
 public:
  static constexpr uint32_t kMaxBiases = 1024;
  /// No token.
  static constexpr int32_t kNone = -1;

  /// Takes its working memory from `arena`, now and for good.
  void init(uint32_t n_vocab, Arena* arena);
  /// Sets the history that the sampler reads and writes. It outlives the sampler. After changing it, call start().
  void attach(SamplerState* state) { state_ = state; }
  const SamplerState* state() const { return state_; }
  /// No mask is in force then, and nothing is held back.
  void start(const SamplerOptions& options);
  /// Remembers a token of the context for the penalties.
  void accept(int32_t id);
  /// Removes biases and penalties. The owner keeps the history.
  void forget();

  /// Of the choices from now on: a bit for each token, id i in bit i % 32 of word i / 32; 1: allowed. Null: all are. It
  /// is read by each choice.
  void setMask(const uint32_t* mask) { mask_ = mask; }
  /// Tokens that must not be chosen during hold(true), also if the mask allows them.
  void holdBack(int32_t id) { held_back_[static_cast<uint32_t>(id) / 32] |= bitOf(id); }
  void hold(bool on) { holds_ = on; }

  /// Not-a-number counts as minus infinity. Ties go to the lower id. Where no logit is left above minus infinity, the
  /// lowest id that neither mask nor bias forbids; kNone: they forbid all.
  int32_t sample(const float* logits);
  /// Room for n_vocab floats, where sample() works: the caller's until then.
  void* room() const {
    static_assert(sizeof(Candidate) >= sizeof(float), "a logit for each token");
    return candidates_;
  }
  /// Whether these say as much as all logits would: as many of them as may be drawn are, when adjusted, no worse than the
  /// last of them is as it stands, and so than any other, and no other can have been moved up.
  bool suffices(const TopTokens& top);
  /// Whether the best token is always chosen.
  bool takesTheBest() const {
    return options_.greedy && !penalises() && n_biases_ == 0 && !masked();
  }
  /// The same token as sample() of all logits, if they suffice.
  int32_t sample(const TopTokens& top);

 private:
  /// Of more, sums would depend on the order in which candidates come.
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
  /// What happens to the logit of one token.
  struct Adjustment {
    int32_t id;
    uint32_t repeated;  ///< 1: the repeat penalty is for it
    float shift;        ///< penalties but the first, and bias, in one: a shift down never rounds up
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
  /// The token that was accepted `back` tokens before the latest.
  int32_t recent(uint32_t back) const {
    return state_->recent[(state_->n_recent - 1 - back) % SamplerState::kRecentTokens];
  }
  /// Tokens of the windows with their penalties, by id.
  uint32_t penalties(Adjustment* out) const;
  // DRY: sampler_dry.cpp.
  /// lengths[i]: of the sequence that the token recent(i) would continue, if it came next.
  void repeatedLengths(uint32_t* lengths, uint32_t n) const;
  uint32_t unbrokenTokens(uint32_t n) const;
  float dryPenalty(uint32_t length) const;
  /// Fills adjustments_, unless nothing has changed since.
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
  /// The k best, in no order, at the front of candidates_; fewer where the others are minus infinity.
  uint32_t best(const float* logits, uint32_t k);
  // Choosing: sampler_choice.cpp.
  class Choice;
  /// What logits must have at least by top-n-sigma.
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
