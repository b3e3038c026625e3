// Chooses the pixels that an encoder reads: the new size of a picture, and its tiles.
//
// The rules come from the publishers (docs/pictures.md). They determine the number of rows that a picture takes in the
// text model.
#pragma once

#include "vision/vision_desc.h"

namespace oriel_internal {

/// Default for the most rows of a Gemma 4 picture.
constexpr uint32_t kDefaultImageRows = 280;

struct PictureLayout {
  Filter filter = Filter::kBilinear;
  uint32_t n_sizes = 0;  ///< resizings of the picture before it is cut into tiles
  PictureSize sizes[2];
  uint32_t tile_columns = 0;  ///< 0: not cut
  uint32_t tile_rows = 0;
  uint32_t cell = 0;
  PictureSize whole;  ///< the uncut picture, or the overview in addition to the tiles
  bool whole_of_sizes =
      false;  ///< `whole` is resized from the last of `sizes`, not from the picture

  /// Tiles row by row, and the whole picture last.
  uint32_t tileCount() const { return tile_columns * tile_rows + 1; }
  bool isWhole(uint32_t tile) const { return tile == tile_columns * tile_rows; }
  Stretches stretchesOf(uint32_t tile) const;
  /// The grid of a tile's rows of the text model: its columns and rows.
  PictureSize gridOf(uint32_t tile) const;
  uint32_t rowsOf(uint32_t tile) const;
  uint32_t rowCount() const;
};

/// `image_rows`: the most rows for a picture of kGemma4 (0: kDefaultImageRows) or kQwen3 (0: the publisher's limit).
/// Other projectors have their own limits. ORIEL_ERROR_ARGUMENT for a picture that is too narrow, or needs more positions
/// than the encoder has.
Status layOutPicture(const VisionDesc& desc, PictureSize size, uint32_t image_rows, const Log& log,
                     PictureLayout* layout);

}  // namespace oriel_internal
