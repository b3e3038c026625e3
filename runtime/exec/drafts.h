// Guesses the next tokens from the session's tokens: prompt lookup (Saxena, 2023). A guess is a token that followed the
// same last few tokens earlier in the context. The model decides whether it is right: one step verifies several
// guesses, and only the tokens that would have been chosen anyway count.
#pragma once

#include "base/arena.h"
#include "base/limits.h"
#include "kv/token_ids.h"

namespace oriel_internal {

/// When guesses are verified.
enum class DraftUse : uint8_t {
  kAsItPays,  ///< if the expected time is less
  kAlways,    ///< at any cost
  kNever,
};

/// The tokens of a session whose ids are known, and one more that was just chosen.
class DraftText {
 public:
  DraftText(const TokenIds& ids, const HeldTokens& held, int32_t next)
      : ids_(ids), held_(held), next_(next) {}

  /// Tokens, the chosen one included.
  uint64_t count() const { return held_.position + 1; }
  /// TokenIds::kUnknown: it is not held.
  int32_t at(uint64_t token) const {
    return token == held_.position ? next_ : held_.has(token) ? ids_.at(token) : TokenIds::kUnknown;
  }
  /// visit(token) for the held tokens from `from` on, except the last.
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

/// The last places of groups of kGroup tokens. Entries are only hints: the reader compares the tokens. So entries stay
/// when tokens are evicted or a session goes back. Fixed memory.
class DraftIndex {
 public:
  static constexpr uint32_t kGroup = 3;
  static constexpr uint32_t kEntries = 1u << 14;

  void init(Arena* arena) { entries_ = arena->take<uint32_t>(kEntries); }
  void forget() { std::fill_n(entries_, kEntries, 0u); }

  /// The token after an earlier place of the kGroup tokens that end with `last`; 0: none is known.
  uint64_t after(const DraftText& text, uint64_t last) const;
  void add(const DraftText& text, uint64_t last);

 private:
  uint32_t* entryOf(const DraftText& text, uint64_t last) const;

  uint32_t* entries_ = nullptr;  ///< the lower bits of the last token's number
};

/// The recent share of right guesses; the assumed share counts as a few tokens.
class GuessShare {
 public:
  static constexpr uint32_t kRemembered = 16;

  constexpr GuessShare(double assumed, uint32_t remembered = kRemembered)
      : share_(assumed), remembered_(remembered) {}
  void judged(bool right);
  double value() const { return share_; }

 private:
  double share_;
  uint32_t remembered_;  ///< only the latest tokens count, at most this number
  uint32_t judged_ = 0;
};

/// `time`, a little nearer to the latest one, so it stays near the median in spite of single outliers. 0: unknown.
double movedTowards(double time, double latest);

/// The cost of steps of several rows relative to one row, and the share of right guesses. Both are learned from every
/// token: a guess that was not sent to the model is compared with the token that came.
class DraftCost {
 public:
  /// Guesses in a step, up to `most`, that a token is expected to cost the least with. `length`: tokens that agree in front
  /// of the first guess.
  uint32_t best(uint32_t length, uint32_t most);
  /// The same of guesses that are right with these shares.
  uint32_t best(const double* shares, uint32_t most);
  /// The same, where each guess costs `each` of a step of one row before it is verified. Learns nothing.
  uint32_t cheapest(const double* shares, uint32_t most, double each) const;
  /// Of one row; 0: not known.
  double oneMs() const { return one_ms_; }
  /// Whether that is known, as of late.
  bool knowsOne() const;
  void judged(uint32_t length, bool right);
  /// A step of `rows` rows took `ms`.
  void took(uint32_t rows, double ms);

 private:
  static constexpr uint32_t kLengths = 6;  ///< classes of lengths
  static constexpr uint32_t kSizes = 5;    ///< of steps: up to 1, 2, 4, 8 and 16 rows
  static uint32_t lengthClass(uint32_t length);
  static uint32_t sizeClass(uint32_t rows);

  GuessShare right_[kLengths] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
  /// Relative to a step of one row, near the median. Measured kernels are close to these.
  double times_[kSizes] = {1, 1.4, 2, 3, 5};
  double one_ms_ = 0;           ///< of one row; 0: not known
  uint32_t steps_of_many_ = 0;  ///< since the last of one
};

struct DraftCounts {
  uint64_t drafted = 0;   ///< guesses that were verified
  uint64_t accepted = 0;  ///< and were right
};

/// The guesses of one session. No allocations after init().
class Drafter {
 public:
  static constexpr uint32_t kMost = 15;

  /// `most` guesses a step, at most kMost; 0: none ever, and no memory.
  void init(uint32_t most, Arena* arena);
  /// The text is another one.
  void restart() { seen_ = source_ = 0; }
  void forget();
  uint32_t most() const { return most_; }

  void begin(DraftUse use) { use_ = most_ == 0 ? DraftUse::kNever : use; }
  bool active() const { return use_ != DraftUse::kNever; }
  DraftUse use() const { return use_; }
  DraftCost& cost() { return cost_; }

  /// A token was chosen, the last of `text`.
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
  uint64_t seen_ = 0;    ///< tokens that the index knows of
  uint64_t source_ = 0;  ///< the token before the next guess; 0: no guess
  uint32_t length_ = 0;  ///< tokens that agree before it
};

}  // namespace oriel_internal
