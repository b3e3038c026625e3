// An index of a conversation's words by token, including evicted ones, to find turns related to a message.
#pragma once

#include "base/arena.h"

namespace oriel_internal {

/// Consecutive tokens of a conversation.
struct TokenSpan {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
  bool operator==(const TokenSpan& b) const { return begin == b.begin && end == b.end; }
};

/// The found passages in conversation order.
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

/// The distinct words of a message.
class RecallQuery {
 public:
  static constexpr uint32_t kMost = 64;

  /// Beyond the capacity the oldest word is replaced: the last words of a message usually hold the question.
  void add(uint32_t word);
  /// kMost: not found.
  uint32_t find(uint32_t word) const;
  uint32_t count() const { return count_; }

 private:
  uint32_t words_[kMost] = {};
  uint32_t count_ = 0;
  uint32_t next_ = 0;  ///< the next to be replaced when full
};

/// Words and turn starts of the latest tokens; the oldest are dropped when full.
//
/// A search finds passages: whole turns, or pieces of long turns. A picture is never divided: in a long turn it is one
/// passage with the text after it. A passage has two scores.
//
/// The first is for words shared with the query (Okapi BM25; Robertson and Zaragoza, "The Probabilistic Relevance
/// Framework", 2009, section 3.3):
//
///     sum over words of ln(1 + (N - n + 1/2) / (n + 1/2)) ^ 3 * tf (k + 1) / (tf + k (1 - b + b * length / mean
/// length))
//
/// with N passages, n of them with the word, and tf occurrences in this one. The power of 3 is an addition to the
/// published formula: it emphasises rare words.
//
/// The second is the attention it would get (exec/recall_file.h), if there are queries.
//
/// Both are counted in standard deviations above the mean of all passages, and added.
class RecallIndex {
 public:
  static constexpr uint32_t kMostTurns = 4096;
  /// Passages that are scored; in a longer conversation the latest.
  static constexpr uint32_t kMostPassages = 4096;
  /// Tokens per piece of a turn that is too long to recall whole.
  static constexpr uint32_t kPieceTokens = 64;
  static constexpr uint32_t kMostPictures = 256;
  /// Most tokens between two tiles of a picture.
  static constexpr uint32_t kBetweenTiles = 3;

  /// Reserves `capacity` words in `arena`, once, and room for kMostPictures if there are `pictures`.
  void init(uint64_t capacity, bool pictures, Arena* arena);
  void clear();
  /// Copies `other`, which must have the same capacity.
  void copy(const RecallIndex& other);

  /// Tokens must not decrease, except after truncate().
  void addWord(uint64_t token, uint32_t word);
  void markTurn(uint64_t token);
  /// Token `token` is row number `row` of all pictures.
  void addRow(uint64_t token, uint32_t row);
  /// Forgets words and pictures that end at `word_token` or later, and turns that begin at `turn_token` or later.
  void truncate(uint64_t word_token, uint64_t turn_token);
  uint64_t wordCount() const { return n_words_; }

  /// Splits tokens `begin` to `end` into passages of at most `room` tokens and scores their words.
  void weigh(const RecallQuery& query, uint64_t begin, uint64_t end, uint32_t room);
  /// From the latest weigh(), ascending.
  uint32_t passageCount() const { return n_passages_; }
  const TokenSpan& passage(uint32_t i) const { return passages_[i].span; }
  /// For passage i: the attention that it would get, for each of its tokens.
  void setAttention(uint32_t i, float attention) { passages_[i].attention = attention; }
  /// The best passages, together at most `room` tokens, in conversation order. Empty if the scores do not distinguish
  /// passages.
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
  void forEachSpan(uint64_t begin, uint64_t end, uint32_t room, const Visit& visit) const;
  template <typename Visit>
  void forEachPassage(const RecallQuery& query, uint64_t begin, uint64_t end, uint32_t room,
                      const Visit& visit) const;
  const Word& word(uint64_t i) const { return words_[(first_word_ + i) % capacity_]; }
  uint64_t tokenOf(const Word& word) const {
    return latest_ - (static_cast<uint32_t>(latest_) - word.token);
  }
  uint64_t turn(uint32_t i) const { return turns_[(first_turn_ + i) % kMostTurns]; }
  /// Tokens of a picture, from its first row to its last.
  struct Picture {
    TokenSpan span;
    uint32_t first_row;
  };
  Picture& picture(uint32_t i) const { return pictures_[(first_picture_ + i) % kMostPictures]; }
  TokenSpan pictureFrom(uint64_t token) const;

  Word* words_ = nullptr;
  uint64_t* turns_ = nullptr;
  Picture* pictures_ = nullptr;
  Passage* passages_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t first_word_ = 0;
  uint64_t n_words_ = 0;
  uint64_t used_ = 0;    ///< number of words written since clear()
  uint64_t latest_ = 0;  ///< token of the latest word, or a later one
  uint32_t first_turn_ = 0;
  uint32_t n_turns_ = 0;
  uint32_t first_picture_ = 0;
  uint32_t n_pictures_ = 0;
  uint32_t n_passages_ = 0;
};

}  // namespace oriel_internal
