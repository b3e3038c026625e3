// The tokens of a picture in a text: control tokens and rows.
#pragma once

#include "exec/picture_store.h"
#include "kv/token_ids.h"
#include "text/tokenizer.h"

namespace oriel_internal {

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
