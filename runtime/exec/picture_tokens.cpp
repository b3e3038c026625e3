#include "exec/picture_tokens.h"

#include <cstdio>
#include <cstring>

namespace oriel_internal {

int32_t PictureTokens::find(const char* text) const {
  return tokenizer_.find(text, std::strlen(text));
}

bool PictureTokens::nameOf(const HeldPicture& picture, uint32_t tile, uint32_t index, char* name,
                           size_t capacity) const {
  const bool whole = picture.isWhole(tile);
  const uint32_t columns = picture.tile_columns;
  const unsigned row = columns != 0 ? tile / columns + 1 : 0;
  const unsigned column = columns != 0 ? tile % columns + 1 : 0;
  switch (words_) {
    case PictureWords::kNone:
    case PictureWords::kGemma4:
    case PictureWords::kQwen3:
      return false;
    case PictureWords::kLfm2:
      if (columns == 0 || index != 0) {
        return false;
      }
      std::snprintf(name, capacity, whole ? "<|img_thumbnail|>" : "<|img_row_%u_col_%u|>", row,
                    column);
      return true;
    case PictureWords::kIdefics3:
      break;
  }
  // A line of tiles ends with a newline, the last line with two.
  const bool begins_line = tile != 0 && (whole || column == 1);
  if (index == 0 && begins_line) {
    std::snprintf(name, capacity, "%s", whole ? "\n\n" : "\n");
    return true;
  }
  index -= begins_line ? 1 : 0;
  if (index == 0) {
    std::snprintf(name, capacity, "<fake_token_around_image>");
  } else {
    std::snprintf(name, capacity, whole ? "<global-img>" : "<row_%u_col_%u>", row, column);
  }
  return index < 2;
}

Status PictureTokens::check(const Log& log) const {
  HeldPicture smallest;
  smallest.rows = smallest.columns[1] = smallest.lines[1] = 1;
  uint64_t tokens = 0;
  return placeholder() >= 0 ? count(smallest, log, &tokens)
                            : log.fail(ORIEL_ERROR_UNSUPPORTED,
                                       "the model's vocabulary has no token %s: give the "
                                       "\"mmproj\" file of this model",
                                       rowOf(words_).token);
}

Status PictureTokens::count(const HeldPicture& picture, const Log& log, uint64_t* count) const {
  uint64_t tokens = 0;
  const Status status = forEach(picture, [&](int32_t id) -> Status {
    ++tokens;
    return id == -1 ? ORIEL_ERROR_UNSUPPORTED : kOk;
  });
  *count = tokens;
  return status.ok() ? status
                     : log.fail(ORIEL_ERROR_UNSUPPORTED,
                                "the model's vocabulary lacks a token of this picture's tiles: "
                                "give the \"mmproj\" file of this model, or a smaller picture");
}

}  // namespace oriel_internal
