#include "vision/patches.h"

namespace oriel_internal {

void PatchReader::create(const VisionDesc& desc, const Picture& picture,
                         const PictureLayout& layout, uint32_t tile, Arena* arena) {
  const Stretches stretches = layout.stretchesOf(tile);
  rows_.create(picture, stretches, arena);
  desc_ = &desc;
  width_ = stretches.area.width / desc.patch;
  strip_rows_ = desc.inBlocks() ? desc.merge : 1;
  strip_patches_ = width_ * strip_rows_;
  strips_ = stretches.area.height / (desc.patch * strip_rows_);
  y_ = 0;
}

void PatchReader::nextStrip(float* patches) {
  const uint32_t side = desc_->patch;
  const uint32_t block = desc_->inBlocks() ? desc_->merge : 1;
  for (uint32_t y = 0; y < strip_rows_ * side; ++y) {
    const uint8_t* pixel = rows_.row(y_++);
    for (uint32_t column = 0; column < width_; ++column) {
      // Blocks from left to right; within one, row by row.
      const uint32_t patch = (column / block * block + y / side) * block + column % block;
      float* to = patches + size_t{patch} * desc_->patchValues() + y % side * side;
      for (uint32_t x = 0; x < side; ++x, pixel += 3) {
        for (uint32_t colour = 0; colour < 3; ++colour) {
          to[colour * side * side + x] =
              static_cast<float>(pixel[colour]) * desc_->scale[colour] + desc_->offset[colour];
        }
      }
    }
  }
}

}  // namespace oriel_internal
