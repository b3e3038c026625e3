#include "pictures/picture_file.h"

#include <cstring>

#ifndef _WIN32
#include <dlfcn.h>
#endif

#include "failure.h"

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

namespace {

/// Beginnings of files.
struct Kind {
  const char* begin;
  size_t bytes;
  DecodedPicture (*decode)(const std::string&, const std::string&);
};
constexpr Kind kKinds[] = {{"\x89PNG\r\n\x1a\n", 8, decodePng}, {"\xff\xd8\xff", 3, decodeJpeg}};

}  // namespace

#ifdef _WIN32
PictureLibrary::PictureLibrary(const char* const*) {}
void* PictureLibrary::symbol(const char*) const { return nullptr; }
#else
// Stays open: it is small, and the next picture needs it again.
PictureLibrary::PictureLibrary(const char* const* names) {
  for (; handle_ == nullptr && *names != nullptr; ++names) {
    handle_ = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
  }
}
void* PictureLibrary::symbol(const char* name) const { return dlsym(handle_, name); }
#endif

void failPicture(const std::string& name, const std::string& why) {
  throw Failure{kExitFailed,
                "cannot read the picture" + (name.empty() ? "" : " " + name) + ": " + why};
}

void checkPictureSize(uint64_t width, uint64_t height, const std::string& name) {
  if (width == 0 || height == 0) {
    failPicture(name, "it has no pixels: give another");
  }
  if (width > UINT32_MAX / 3 || height > UINT32_MAX / 3 || width * height > kMostPicturePixels) {
    failPicture(name, "it has " + std::to_string(width) + " x " + std::to_string(height) +
                          " pixels, and 64 million are the most: make it smaller");
  }
}

DecodedPicture decodePicture(const std::string& bytes, const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (bytes.size() >= kind.bytes && std::memcmp(bytes.data(), kind.begin, kind.bytes) == 0) {
      return kind.decode(bytes, name);
    }
  }
  failPicture(name, "it is neither PNG nor JPEG: convert it");
}

}  // namespace cli
