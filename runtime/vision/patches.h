// Converts a tile to the input of the encoder's first matrix: one vector of colours for each patch.
#pragma once

#include "vision/picture_layout.h"

namespace oriel_internal {

class PatchReader {
 public:
  /// As StretchedRows::create.
  void create(const VisionDesc& desc, const Picture& picture, const PictureLayout& layout,
              uint32_t tile, Arena* arena);
  uint32_t patchCount() const { return strips_ * strip_patches_; }
  uint32_t stripPatches() const { return strip_patches_; }

  /// The next stripPatches() patches in the encoder's order, as [patch][colour][y][x]. Call it at most
  /// patchCount() / stripPatches() times.
  void nextStrip(float* patches);

 private:
  StretchedRows rows_;
  const VisionDesc* desc_ = nullptr;
  uint32_t width_ = 0;       ///< patches of the tile
  uint32_t strip_rows_ = 0;  ///< rows of patches in a strip
  uint32_t strip_patches_ = 0;
  uint32_t strips_ = 0;
  uint32_t y_ = 0;  ///< next row of pixels
};

}  // namespace oriel_internal
