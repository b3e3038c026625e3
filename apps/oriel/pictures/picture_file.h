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

}  // namespace cli
