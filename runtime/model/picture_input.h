// How pictures enter a text model: rows of numbers in the place of token embeddings.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "base/picture_words.h"

namespace oriel_internal {

/// Most vectors of a row: the embedding, and one vector for each deepstack layer (the first layers of the model).
constexpr uint32_t kMaxPictureParts = 9;
/// TokenStep::place of a picture's row i in a step is kPicturePlace + i. Places for best tokens are smaller.
constexpr uint32_t kPicturePlace = 1u << 30;

struct PictureInput {
  PictureWords words = PictureWords::kNone;
  uint32_t parts = 1;  ///< vectors of n_embd values in a row; part j > 0 is added after layer j - 1
  uint32_t rows_held = 0;  ///< rows that a session holds, of all its pictures
  /// Nonzero: the most rows of a picture, which see each other in layers with a window of their own. A batch then has
  /// all rows of a picture.
  uint32_t rows_together = 0;
  /// Rotary pairs have positions in several dimensions (M-RoPE): time, row and column. Text has the same position in
  /// all of them.
  bool in_dimensions = false;
  uint8_t dimension[kMaxHeadDim / 2] = {};  ///< of each pair

  /// Values of a row.
  uint32_t width(uint32_t n_embd) const { return parts * n_embd; }
};

}  // namespace oriel_internal
