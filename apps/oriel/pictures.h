// PNG and JPEG pictures as pixels, with libpng and libjpeg-turbo, which are opened at run time if installed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cli {

/// Pixels of a picture that is decoded: 192 MB as RGB.
constexpr uint64_t kMostPicturePixels = 64ull << 20;

/// 8-bit RGB rows from the top, upright: an orientation that the file states is applied, alpha is left out.
struct DecodedPicture {
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint8_t> rgb;
};

/// `name`: as errors name the picture, may be empty. Throws Failure for other kinds of files, damaged ones and ones above
/// kMostPicturePixels, before any pixel is decoded.
DecodedPicture decodePicture(const std::string& bytes, const std::string& name);

/// As decodePicture, of a file.
DecodedPicture readPicture(const std::string& path);

// The decoders.

/// A function of a library that is opened when it is needed. Null where the library or the function is missing.
class PictureLibrary {
 public:
  /// The first of `names` that the system finds; names end with null.
  explicit PictureLibrary(const char* const* names);
  bool isOpen() const { return handle_ != nullptr; }

  template <typename Function>
  bool find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(symbol(name));
    return *function != nullptr;
  }

 private:
  void* symbol(const char* name) const;
  void* handle_ = nullptr;
};

[[noreturn]] void failPicture(const std::string& name, const std::string& why);
/// Throws for a picture that is too large to be decoded.
void checkPictureSize(uint64_t width, uint64_t height, const std::string& name);

DecodedPicture decodePng(const std::string& bytes, const std::string& name);
DecodedPicture decodeJpeg(const std::string& bytes, const std::string& name);

/// The Exif orientation, 1 .. 8, from a TIFF header and the data after it; 1 if absent.
int exifOrientation(const uint8_t* tiff, size_t bytes);
/// Turns and mirrors the picture so that it stands upright.
void applyOrientation(int orientation, DecodedPicture* picture);

}  // namespace cli
