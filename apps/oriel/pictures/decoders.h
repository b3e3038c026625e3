// The decoders behind picture_file.h.
#pragma once

#include "pictures/picture_file.h"

namespace cli {

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

/// 1 .. 8 as Exif defines it, of a TIFF header and what follows; 1 where there is none.
int exifOrientation(const uint8_t* tiff, size_t bytes);
/// Turns and mirrors the picture so that it stands upright.
void applyOrientation(int orientation, DecodedPicture* picture);

}  // namespace cli
