// Guesses the next tokens from the session's tokens: prompt lookup (Saxena, 2023). A guess is a token that followed the
// same last few tokens earlier in the context. One step verifies several guesses, and only tokens that the model would
// choose anyway are accepted.
#pragma once

#include "base/arena.h"
#include "base/checked.h"
#include "kv/token_ids.h"

namespace oriel_internal {

/// When to verify guesses.
enum class DraftUse : uint8_t {
  kAsItPays,  ///< if the expected time is shorter
  kAlways,    ///< at any cost
  kNever,
};

/// The tokens of a session with known ids, and the token that was just chosen.
class DraftText {
 public:
  DraftText(const TokenIds& ids, const HeldTokens& held, int32_t next)
      : ids_(ids), held_(held), next_(next) {}

  /// Number of tokens, including the chosen one.
  uint64_t count() const { return held_.position + 1; }
  /// TokenIds::kUnknown: the token is not held.
  int32_t at(uint64_t token) const {
    return token == held_.position ? next_ : held_.has(token) ? ids_.at(token) : TokenIds::kUnknown;
  }
  /// Calls visit(token) for the held tokens from `from` on, except the last.
  template <typename Visit>
  void forEach(uint64_t from, const Visit& visit) const {
    for (uint64_t t = from; t < held_.sinks; ++t) {
      visit(t);
    }
    for (uint64_t t = std::max({from, held_.sinks, held_.first}); t < held_.position; ++t) {
      visit(t);
    }
  }

 private:
  const TokenIds& ids_;
  const HeldTokens held_;
  const int32_t next_;
};

/// The last places of groups of kGroup tokens. Entries are only hints, because the reader compares the tokens. They
/// stay when tokens are evicted or a session goes back. Fixed memory.
class DraftIndex {
 public:
  static constexpr uint32_t kGroup = 3;
  static constexpr uint32_t kEntries = 1u << 14;

  void init(Arena* arena) { entries_ = arena->take<uint32_t>(kEntries); }
  void forget() { std::fill_n(entries_, kEntries, 0u); }

  /// The token after an earlier occurrence of the kGroup tokens that end with `last`; 0: unknown.
  uint64_t after(const DraftText& text, uint64_t last) const;
  void add(const DraftText& text, uint64_t last);

 private:
  uint32_t* entryOf(const DraftText& text, uint64_t last) const;

  uint32_t* entries_ = nullptr;  ///< lower bits of the last token's number
};

/// The recent share of right guesses. The assumed share has the weight of a few tokens.
class GuessShare {
 public:
  static constexpr uint32_t kRemembered = 16;

  constexpr GuessShare(double assumed, uint32_t remembered = kRemembered)
      : share_(assumed), remembered_(remembered) {}
  void judged(bool right);
  double value() const { return share_; }

 private:
  double share_;
  uint32_t remembered_;  ///< number of latest tokens that count
  uint32_t judged_ = 0;
};

/// Moves `time` a little towards the latest one, so that it stays near the median despite single outliers. 0: unknown.
double movedTowards(double time, double latest);

/// The cost of steps with several rows relative to one row, and the share of right guesses. It learns both from every
/// token: guesses that were not sent to the model are compared with the actual token.
class DraftCost {
 public:
  /// Guesses per step, up to `most`, with the lowest expected cost per token. `length`: tokens that agree before the
  /// first guess.
  uint32_t best(uint32_t length, uint32_t most);
  /// The same for guesses that are right with these shares.
  uint32_t best(const double* shares, uint32_t most);
  /// The same if each guess costs `each` of a one-row step before it is verified. Learns nothing.
  uint32_t cheapest(const double* shares, uint32_t most, double each) const;
  /// Time of a one-row step; 0: unknown.
  double oneMs() const { return one_ms_; }
  /// True if that time was measured recently.
  bool knowsOne() const;
  void judged(uint32_t length, bool right);
  /// Records that a step of `rows` rows took `ms`.
  void took(uint32_t rows, double ms);

 private:
  static constexpr uint32_t kLengths = 6;  ///< classes of lengths
  static constexpr uint32_t kSizes = 5;    ///< classes of steps: up to 1, 2, 4, 8 and 16 rows
  static uint32_t lengthClass(uint32_t length);
  static uint32_t sizeClass(uint32_t rows);

  GuessShare right_[kLengths] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
  /// Relative to a one-row step, near the median. Measured values are close to these.
  double times_[kSizes] = {1, 1.4, 2, 3, 5};
  double one_ms_ = 0;           ///< one row; 0: unknown
  uint32_t steps_of_many_ = 0;  ///< since the last one-row step
};

struct DraftCounts {
  uint64_t drafted = 0;   ///< verified guesses
  uint64_t accepted = 0;  ///< right guesses
};

/// The guesses of one session. No allocations after init().
class Drafter {
 public:
  static constexpr uint32_t kMost = 15;

  /// `most`: guesses per step, up to kMost; 0: no guesses and no memory.
  void init(uint32_t most, Arena* arena);
  /// The text was replaced.
  void restart() { seen_ = source_ = 0; }
  void forget();
  uint32_t most() const { return most_; }

  void begin(DraftUse use) { use_ = most_ == 0 ? DraftUse::kNever : use; }
  bool active() const { return use_ != DraftUse::kNever; }
  DraftUse use() const { return use_; }
  DraftCost& cost() { return cost_; }

  /// Call after a token was chosen, the last of `text`.
  void chosen(const DraftText& text);
  /// Guesses for the following tokens, best first; returns their number, at most `room`.
  uint32_t guess(const DraftText& text, uint32_t room, int32_t* ids);
  /// As DraftCost::took().
  void took(uint32_t rows, double ms) { cost_.took(rows, ms); }
  void verified(uint32_t drafted) { counts_.drafted += drafted; }
  void accepted() { ++counts_.accepted; }
  const DraftCounts& counts() const { return counts_; }

 private:
  void look(const DraftText& text, uint64_t last);

  DraftIndex index_;
  DraftCost cost_;
  DraftCounts counts_;
  DraftUse use_ = DraftUse::kNever;
  uint32_t most_ = 0;
  uint64_t seen_ = 0;    ///< tokens in the index
  uint64_t source_ = 0;  ///< token before the next guess; 0: no guess
  uint32_t length_ = 0;  ///< agreeing tokens before it
};

// The benefit of a draft model's guesses: their share of right ones by sureness, and their cost.

/// A guess and its sureness.
struct ModelGuess {
  int32_t id = -1;
  uint32_t sureness = 0;  ///< a class, from ModelDrafter::surenessOf()
};

/// Fixed memory. Runs no model.
class ModelDrafter {
 public:
  static constexpr uint32_t kClasses = 5;

  /// The class of a guess with the fraction `share` of the best tokens' probability.
  static uint32_t surenessOf(double share);

  void forget() { *this = ModelDrafter(); }
  /// Number of guesses to make, up to `most`. If guesses do not pay, makes one now and then to measure the benefit.
  uint32_t wanted(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// True if one more guess is expected to pay.
  bool pays(const DraftCost& cost, uint32_t most, DraftUse use) const;
  /// Records guesses and their time. Returns the number of guesses to verify, counted from the first.
  uint32_t made(const ModelGuess* guesses, uint32_t count, double ms, DraftCost* cost,
                DraftUse use);
  /// Records a chosen token: the guess of it, if any, was right or wrong.
  void chosen(int32_t id);

 private:
  uint32_t best(const DraftCost& cost, uint32_t most) const;
  double each(const DraftCost& cost) const;
  uint32_t interval(const DraftCost& cost) const;

  GuessShare right_[kClasses] = {0.3, 0.45, 0.6, 0.75, 0.9};
  GuessShare any_ = {0.8, 64};        ///< all guesses: some are made only to measure
  double guess_ms_ = 0;               ///< one guess, near the median; 0: unknown
  uint32_t waited_ = 0;               ///< tokens since the last guess
  int32_t ids_[Drafter::kMost] = {};  ///< the latest guesses
  uint8_t sureness_[Drafter::kMost] = {};
  uint32_t count_ = 0;
  uint32_t next_ = 0;  ///< the guess of the next token
};

}  // namespace oriel_internal
