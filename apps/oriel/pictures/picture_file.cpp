#include "pictures/picture_file.h"

#include <cstring>

#include "failure.h"
#include "pictures/decoders.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace cli {
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
