// Which pixels an encoder reads: the size a picture is stretched to, and the tiles it is cut into.
//
// The rules are the publishers' (docs/pictures.md): they decide how many rows of the text model a picture takes.
#pragma once

#include "vision/vision_desc.h"

namespace oriel_internal {

/// Rows that Gemma 4's pictures take at most, where the caller does not say.
constexpr uint32_t kDefaultImageRows = 280;

struct PictureLayout {
  Filter filter = Filter::kBilinear;
  uint32_t n_sizes = 0;  ///< resizings of the picture before it is cut into tiles
  PictureSize sizes[2];
  uint32_t tile_columns = 0;  ///< 0: it is not cut
  uint32_t tile_rows = 0;
  uint32_t cell = 0;
  PictureSize whole;            ///< the picture that is not cut, or the one beside the tiles
  bool whole_of_sizes = false;  ///< is made of the last of `sizes`, not of the picture itself

  /// Tiles row by row, and the whole picture last.
  uint32_t tileCount() const { return tile_columns * tile_rows + 1; }
  bool isWhole(uint32_t tile) const { return tile == tile_columns * tile_rows; }
  Stretches stretchesOf(uint32_t tile) const;
  /// Rows of the text model: columns and rows of a grid.
  PictureSize gridOf(uint32_t tile) const;
  uint32_t rowsOf(uint32_t tile) const;
  uint32_t rowCount() const;
};

/// `image_rows`: at most so many rows for a picture of kGemma4; the others' files decide. ORIEL_ERROR_ARGUMENT for a
/// picture that is too narrow, or needs more positions than the encoder has.
Status layOutPicture(const VisionDesc& desc, PictureSize size, uint32_t image_rows, const Log& log,
                     PictureLayout* layout);

}  // namespace oriel_internal
