// A picture as an app hands it over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/log.h"

namespace oriel_internal {

/// Longest side of a picture, in pixels. Bounds the memory of resizing; phones' largest photos have 16,320.
constexpr uint32_t kMaxPictureSide = 16384;

/// Order of a pixel's bytes. Alpha is ignored.
enum class PixelOrder : uint8_t { kRgb8, kRgba8, kBgra8 };

struct Picture {
  const uint8_t* pixels = nullptr;  ///< top row first
  uint32_t width = 0;               ///< pixels, 1 .. kMaxPictureSide
  uint32_t height = 0;              ///< likewise
  size_t stride = 0;                ///< bytes from one row to the next
  PixelOrder order = PixelOrder::kRgb8;
};

constexpr uint32_t bytesOfPixel(PixelOrder order) { return order == PixelOrder::kRgb8 ? 3 : 4; }

/// ORIEL_ERROR_ARGUMENT for no pixels, a side out of range or rows that overlap.
Status checkPicture(const Picture& picture, const Log& log);

}  // namespace oriel_internal
