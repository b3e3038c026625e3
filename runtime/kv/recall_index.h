// Which words a conversation has, token by token, also behind its window: for finding the turns that a message asks for.
#pragma once

#include "base/arena.h"

namespace oriel_internal {

/// Tokens of a conversation, one behind the other.
struct TokenSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const TokenSpan& b) const { return begin == b.begin && end == b.end; }
};

/// What was found, in the order in which it was said.
struct RecallSpans {
  static constexpr uint32_t kMost = 8;
  TokenSpan spans[kMost];
  uint32_t count = 0;

  uint32_t tokens() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sum += spans[i].size();
    }
    return static_cast<uint32_t>(sum);
  }
  bool operator==(const RecallSpans& b) const {
    bool same = count == b.count;
    for (uint32_t i = 0; i < count && same; ++i) {
      same = spans[i] == b.spans[i];
    }
    return same;
  }
};

/// Words of a message, each once.
class RecallQuery {
 public:
  static constexpr uint32_t kMost = 64;

  /// What there is no room for counts no more: the last words of a message are mostly what it asks.
  void add(uint32_t word);
  /// kMost: it has no such word.
  uint32_t find(uint32_t word) const;
  uint32_t count() const { return count_; }

 private:
  uint32_t words_[kMost] = {};
  uint32_t count_ = 0;
  uint32_t next_ = 0;  ///< whose place the next one takes, once there is no other
};

/// Words and beginnings of turns of the latest tokens: where there is no room for more, the oldest go.
///
/// What is found are passages: whole turns, or pieces of turns that are too long. A passage has two scores.
///
/// By the words that it has in common with the query (Okapi BM25; Robertson and Zaragoza, "The Probabilistic Relevance
/// Framework", 2009, section 3.3):
///
///     sum over words of ln(1 + (N - n + 1/2) / (n + 1/2)) ^ 3 * tf (k + 1) / (tf + k (1 - b + b * length / mean length))
///
/// with N passages, n of which have the word, and tf how often this one has it. The power is not in the formula as it is
/// published: it lets the rarest words decide.
///
/// By the attention that it would get (exec/recall_attention.h), where there are queries.
///
/// Both count by how many standard deviations they are above the mean of all passages, and are added up.
class RecallIndex {
 public:
  static constexpr uint32_t kMostTurns = 4096;
  /// Passages that are weighed: of a longer conversation the latest.
  static constexpr uint32_t kMostPassages = 4096;
  /// Tokens of a piece of a turn that is too long to come back whole.
  static constexpr uint32_t kPieceTokens = 64;

  /// Room for so many words, from `arena`, for good.
  void init(uint64_t capacity, Arena* arena);
  void clear();
  /// As `other`, which has as much room.
  void copy(const RecallIndex& other);

  /// Tokens never decrease, but for truncate().
  void addWord(uint64_t token, uint32_t word);
  void markTurn(uint64_t token);
  /// Forgets words that end at `word_token` or behind it, and turns that begin at `turn_token` or behind it.
  void truncate(uint64_t word_token, uint64_t turn_token);
  uint64_t wordCount() const { return n_words_; }

  /// Cuts the tokens from `begin` to `end` into passages of at most `room` tokens and scores them by their words.
  void weigh(const RecallQuery& query, uint64_t begin, uint64_t end, uint32_t room);
  /// Of the latest weigh(), ascending.
  uint32_t passageCount() const { return n_passages_; }
  const TokenSpan& passage(uint32_t i) const { return passages_[i].span; }
  /// Of passage i: the attention that it would get, for each of its tokens.
  void setAttention(uint32_t i, float attention) { passages_[i].attention = attention; }
  /// The best of them, of at most so many tokens together, in the order in which they were said. None, where there is no
  /// reason to take one rather than another.
  RecallSpans best(uint32_t room) const;

 private:
  struct Word {
    uint32_t number;
    uint32_t token;  ///< its lowest bits
  };
  struct Passage {
    TokenSpan span;
    float words;
    float attention;
  };
  struct Counted;
  template <typename Visit>
  void forEachPassage(const RecallQuery& query, uint64_t begin, uint64_t end, uint32_t room,
                      const Visit& visit) const;
  const Word& word(uint64_t i) const { return words_[(first_word_ + i) % capacity_]; }
  uint64_t tokenOf(const Word& word) const {
    return latest_ - (static_cast<uint32_t>(latest_) - word.token);
  }
  uint64_t turn(uint32_t i) const { return turns_[(first_turn_ + i) % kMostTurns]; }

  Word* words_ = nullptr;
  uint64_t* turns_ = nullptr;
  Passage* passages_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t first_word_ = 0;
  uint64_t n_words_ = 0;
  uint64_t used_ = 0;    ///< words that were ever written since clear() lie before this one
  uint64_t latest_ = 0;  ///< token of the latest word, or a later one
  uint32_t first_turn_ = 0;
  uint32_t n_turns_ = 0;
  uint32_t n_passages_ = 0;
};

}  // namespace oriel_internal
