// The pictures of a session: their rows, and where they stand in the conversation.
//
// A picture's row is a token with a negative id (TokenIds::idOfRow), so code that keeps, copies, compares or reads ids
// again also works for rows. The ring holds the rows of the latest pictures and overwrites older rows. To read an older
// picture again, the app must give it again. The pictures of a shared prefix are in a store of the prefix. Their rows have
// the first numbers in every session, and stay.
//
// It knows: rows and their numbers, the layout of each picture, positions in several dimensions (M-RoPE).
// It must never know: pixels, encoders, text, the cache.
#pragma once

#include "base/arena.h"
#include "base/log.h"
#include "base/steps.h"
#include "kv/token_ids.h"
#include "model/model_desc.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Rotary positions of a token: time, row, column.
struct PicturePosition {
  uint64_t of[3] = {};
};

/// One picture whose rows were, or are, held.
struct HeldPicture {
  static constexpr uint32_t kMostTiles = 255;
  uint64_t hash = 0;   ///< of its pixels and size; never 0
  uint32_t first = 0;  ///< number of its first row
  uint32_t rows = 0;
  uint16_t tile_columns = 0;  ///< tiles before the whole picture; 0: none
  uint16_t tile_rows = 0;
  uint16_t columns[2] =
      {};  ///< rows of the text model next to each other: of a tile, of the whole picture
  uint16_t lines[2] = {};  ///< and one above the other

  uint32_t tiles() const { return uint32_t{tile_columns} * tile_rows + 1u; }
  bool isWhole(uint32_t tile) const { return tile + 1 == tiles(); }
  uint32_t rowsOf(uint32_t tile) const {
    const uint32_t which = isWhole(tile) ? 1 : 0;
    return uint32_t{columns[which]} * lines[which];
  }
};
static_assert(sizeof(HeldPicture) == 32, "a snapshot stores it");

/// A picture in the conversation. Models with one position a row do not need them.
struct PictureSpan {
  uint64_t begin = 0;  ///< token of its first row
  uint64_t shift = 0;  ///< token index minus position, for tokens after it
  uint32_t rows = 0;
  uint32_t columns = 0;
};

class PictureStore {
 public:
  static constexpr uint32_t kMostHeld = 64;
  static constexpr uint32_t kMostSpans = 256;
  static constexpr uint32_t kMostPending = 64;

  /// Room for `capacity` rows. Null when measuring.
  static PictureStore* create(const PictureInput& input, uint32_t n_embd, uint32_t capacity,
                              Arena* arena);
  const PictureInput& input() const { return *input_; }
  uint32_t capacity() const { return capacity_; }
  uint32_t width() const { return input_->width(n_embd_); }

  // Rows.

  /// Room for `count` rows in one piece, which the next add() takes. Overwrites the rows of the oldest pictures. Null:
  /// more than the session holds, or `keep` rows that were added before would be lost.
  float* room(uint32_t count, uint32_t keep);
  /// Adds the picture whose rows are in the last room().
  void add(const HeldPicture& picture);
  /// The picture with this hash whose rows are all held; null: none.
  const HeldPicture* find(uint64_t hash) const;
  /// The held picture that has this row; null: none.
  const HeldPicture* pictureOf(uint32_t number) const;
  bool holds(uint32_t number) const { return pictureOf(number) != nullptr; }
  const float* row(uint32_t number) const {
    return number < shared_rows_ ? shared_->row(number)
                                 : rows_ + uint64_t{number % capacity()} * width();
  }
  /// Number of the next row.
  uint32_t next() const { return next_; }

  // Pictures of the text that is being read, in order.

  void expect(const HeldPicture& picture) { pending_[n_pending_++] = picture; }
  bool isFull() const { return n_pending_ == kMostPending; }
  void expectNone() { n_pending_ = 0; }
  uint32_t pending() const { return n_pending_; }
  const HeldPicture& pending(uint32_t i) const { return pending_[i]; }

  // Positions.

  /// A picture of `rows` rows, `columns` next to each other, begins at token `begin`. False: too many.
  bool addSpan(uint64_t begin, uint32_t rows, uint32_t columns);
  void truncate(uint64_t tokens);
  /// Positions of token t, from the conversation's first token on.
  PicturePosition positionOf(uint64_t t) const;
  const uint8_t* dimensions() const { return input_->dimension; }

  // As a whole.

  /// True if there are no pictures since forget() and none in the prefix.
  bool isEmpty() const { return next_ == 0 && n_spans_ == 0; }
  bool hasSpans() const { return n_spans_ != 0; }
  /// Begins again, after the pictures of a prefix that `shared` holds; null: none.
  void forget(const PictureStore* shared = nullptr);
  void forgetOwn() { forget(shared_); }
  /// For a prefix: takes the picture that has this row of a session, unless it is here, and then returns the row's
  /// number here. Null: no room.
  const HeldPicture* share(const PictureStore& session, uint32_t number, uint32_t* here);
  /// For a prefix: takes the positions of a session.
  void sharePositions(const PictureStore& session);
  /// Distinguishes the pictures of prefixes; 0: there are none.
  uint64_t sharedHash() const;
  void copyFrom(const PictureStore& other);
  /// Bytes of the held pictures, their rows and the spans, for a snapshot.
  uint64_t savedBytes() const;
  void save(uint8_t* out) const;
  /// False if save() of a session with such rows did not write these bytes. Rows that do not fit are left out.
  bool load(const uint8_t* data, uint64_t bytes, bool checks_only);
  /// sharedHash() of the saved session.
  static uint64_t savedSharedHash(const uint8_t* data, uint64_t bytes);

 private:
  const PictureInput* input_ = nullptr;
  const PictureStore* shared_ = nullptr;  ///< of the prefix
  uint32_t shared_rows_ = 0;
  uint32_t n_embd_ = 0;
  uint32_t capacity_ = 0;
  uint32_t next_ = 0;
  uint32_t n_held_ = 0;
  uint32_t n_spans_ = 0;
  uint32_t n_pending_ = 0;
  float* rows_ = nullptr;        ///< [capacity][width]: row number r at r modulo capacity
  HeldPicture held_[kMostHeld];  ///< oldest first
  HeldPicture pending_[kMostPending];
  PictureSpan spans_[kMostSpans];  ///< oldest first
};

// The pictures of a call, and how they become rows.

class PictureSource {
 public:
  virtual uint32_t count() const = 0;
  /// Checks a picture and describes its rows; `first` stays 0.
  virtual Status layOut(uint32_t index, const Log& log, HeldPicture* picture) = 0;
  /// Writes its rows. The caller holds the device's turn.
  virtual Status encode(uint32_t index, const Log& log, const StopCheck& stop, float* rows) = 0;

 protected:
  ~PictureSource() = default;
};

// The tokens of a picture in a text: control tokens and rows.

class PictureTokens {
 public:
  PictureTokens(const Tokenizer& tokenizer, PictureWords words)
      : tokenizer_(tokenizer), words_(words) {}

  /// The token that a picture replaces.
  int32_t placeholder() const { return find(rowOf(words_).token); }
  /// ORIEL_ERROR_UNSUPPORTED if the vocabulary lacks a token that every picture needs.
  Status check(const Log& log) const;
  /// The same for the tokens of this picture. *count: its tokens.
  Status count(const HeldPicture& picture, const Log& log, uint64_t* count) const;
  /// Calls emit(id) for each token, in order; id -1: the vocabulary lacks it.
  template <typename Emit>
  Status forEach(const HeldPicture& picture, const Emit& emit) const {
    const PictureWordsRow& row = rowOf(words_);
    uint32_t next = picture.first;
    ORIEL_TRY(row.before != nullptr ? emit(find(row.before)) : Status(kOk));
    for (uint32_t tile = 0; tile < picture.tiles(); ++tile) {
      char name[48];
      for (uint32_t i = 0; nameOf(picture, tile, i, name, sizeof(name)); ++i) {
        ORIEL_TRY(emit(find(name)));
      }
      for (uint32_t i = 0; i < picture.rowsOf(tile); ++i) {
        ORIEL_TRY(emit(TokenIds::idOfRow(next++)));
      }
    }
    return row.after != nullptr ? emit(find(row.after)) : Status(kOk);
  }

 private:
  int32_t find(const char* text) const;
  /// Token `index` before the rows of a tile; false after the last token.
  bool nameOf(const HeldPicture& picture, uint32_t tile, uint32_t index, char* name,
              size_t capacity) const;

  const Tokenizer& tokenizer_;
  const PictureWords words_;
};

}  // namespace oriel_internal
