#include "vision/patches.h"

#include <algorithm>

namespace oriel_internal {

PatchPlace patchPlace(uint32_t merge, uint32_t columns, uint32_t index) {
  const uint32_t block = index / (merge * merge);
  const uint32_t within = index % (merge * merge);
  const uint32_t blocks = columns / merge;
  return {block % blocks * merge + within % merge, block / blocks * merge + within / merge};
}

uint64_t patchPixelBytes(const VisionDesc& desc, uint32_t patches) {
  return uint64_t{patches} * desc.patchValues();
}

void PatchReader::create(const VisionDesc& desc, const Picture& picture,
                         const PictureLayout& layout, uint32_t tile, Arena* arena) {
  const Stretches stretches = layout.stretchesOf(tile);
  rows_.create(picture, stretches, arena);
  desc_ = &desc;
  columns_ = stretches.area.width / desc.patch;
  rows_of_patches_ = stretches.area.height / desc.patch;
  pixels_ = arena->take<uint8_t>(patchPixelBytes(desc, columns_ * desc.merge));
  index_ = 0;
}

void PatchReader::next(float* patch) {
  const uint32_t side = desc_->patch;
  const size_t row_bytes = size_t{columns_} * side * 3;
  const PatchPlace place = patchPlace(desc_->merge, columns_, index_);
  const uint32_t of_blocks = columns_ * desc_->merge;
  if (index_ % of_blocks == 0) {
    const uint32_t first = index_ / columns_ * side;
    for (uint32_t y = 0; y < desc_->cell(); ++y) {
      std::copy_n(rows_.row(first + y), row_bytes, pixels_ + y * row_bytes);
    }
  }
  ++index_;
  const uint8_t* from =
      pixels_ + place.y % desc_->merge * side * row_bytes + size_t{place.x} * side * 3;
  for (uint32_t y = 0; y < side; ++y, from += row_bytes) {
    for (uint32_t x = 0; x < side; ++x) {
      for (uint32_t colour = 0; colour < 3; ++colour) {
        patch[(colour * side + y) * side + x] =
            static_cast<float>(from[3 * x + colour]) * desc_->scale[colour] + desc_->offset[colour];
      }
    }
  }
}

}  // namespace oriel_internal
