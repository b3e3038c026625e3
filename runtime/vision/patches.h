// Converts a tile to the input of the encoder's first matrix: one vector of colours for each patch.
#pragma once

#include "vision/picture_layout.h"

namespace oriel_internal {

/// A place in a tile's grid of patches.
struct PatchPlace {
  uint32_t x = 0;
  uint32_t y = 0;
};
/// Patches come in blocks of merge x merge, so that the patches of a row of the text model are neighbours. Blocks come row
/// by row, and a block's patches, too. `columns`: patches in a row of the grid.
PatchPlace patchPlace(uint32_t merge, uint32_t columns, uint32_t index);

class PatchReader {
 public:
  /// As StretchedRows::create.
  void create(const VisionDesc& desc, const Picture& picture, const PictureLayout& layout,
              uint32_t tile, Arena* arena);
  uint32_t patchCount() const { return columns_ * rows_of_patches_; }

  /// The next patch, as [colour][y][x]. Call it at most patchCount() times.
  void next(float* patch);

 private:
  StretchedRows rows_;
  const VisionDesc* desc_ = nullptr;
  uint8_t* pixels_ = nullptr;  ///< rows of pixels for a row of blocks
  uint32_t columns_ = 0;
  uint32_t rows_of_patches_ = 0;
  uint32_t index_ = 0;  ///< of the next patch
};

/// Bytes that PatchReader takes for the pixels of a tile with `patches` patches, at most.
uint64_t patchPixelBytes(const VisionDesc& desc, uint32_t patches);

}  // namespace oriel_internal
