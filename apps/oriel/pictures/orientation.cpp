#include <cstring>

#include "pictures/decoders.h"

namespace cli {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;

}  // namespace

int exifOrientation(const uint8_t* tiff, size_t bytes) {
  if (bytes < 8) {
    return 1;
  }
  const bool big = std::memcmp(tiff, "MM", 2) == 0;
  if (!big && std::memcmp(tiff, "II", 2) != 0) {
    return 1;
  }
  // Callers have checked that the number lies within the data.
  const auto number = [&](size_t at, size_t width) {
    uint32_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      value = value << 8 | tiff[at + (big ? i : width - 1 - i)];
    }
    return value;
  };
  const size_t list = number(4, 4);
  if (list > bytes - 2) {
    return 1;
  }
  const size_t entries = number(list, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = list + 2 + 12 * i;
    if (at + 12 > bytes) {
      return 1;
    }
    if (number(at, 2) == kOrientationTag && number(at + 2, 2) == kShort) {
      const uint32_t value = number(at + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

void applyOrientation(int orientation, DecodedPicture* picture) {
  if (orientation <= 1) {
    return;
  }
  // For an upright column and row: which of the file's it is. 5 to 8 change sides, and then rows and columns may run
  // backwards.
  const bool turned = orientation >= 5;
  const bool mirror_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  DecodedPicture upright;
  upright.width = turned ? picture->height : picture->width;
  upright.height = turned ? picture->width : picture->height;
  upright.rgb.resize(picture->rgb.size());
  uint8_t* to = upright.rgb.data();
  for (uint32_t y = 0; y < upright.height; ++y) {
    for (uint32_t x = 0; x < upright.width; ++x, to += 3) {
      uint32_t from_x = turned ? y : x;
      uint32_t from_y = turned ? x : y;
      from_x = mirror_x ? picture->width - 1 - from_x : from_x;
      from_y = mirror_y ? picture->height - 1 - from_y : from_y;
      std::memcpy(to, &picture->rgb[(size_t{from_y} * picture->width + from_x) * 3], 3);
    }
  }
  *picture = std::move(upright);
}

}  // namespace cli
