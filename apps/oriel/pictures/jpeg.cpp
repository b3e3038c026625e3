// JPEG by libjpeg-turbo's TurboJPEG interface, whose objects are opaque: no header of it is needed.
#include <cstring>

#include "pictures/picture_file.h"

namespace cli {
namespace {

// TurboJPEG 1.4 and later.
struct TurboJpeg {
  void* (*init)() = nullptr;
  int (*header)(void*, const unsigned char*, unsigned long, int*, int*, int*, int*) = nullptr;
  int (*decompress)(void*, const unsigned char*, unsigned long, unsigned char*, int, int, int, int,
                    int) = nullptr;
  char* (*error)() = nullptr;
  int (*destroy)(void*) = nullptr;

  static constexpr int kRgb = 0;    // TJPF_RGB
  static constexpr int kCmyk = 11;  // TJPF_CMYK
  // TJCS_CMYK, TJCS_YCCK
  static bool isCmyk(int space) { return space == 3 || space == 4; }

  bool load() {
    static const char* const kNames[] = {"libturbojpeg.so.0", "libturbojpeg.0.dylib",
                                         "/opt/homebrew/lib/libturbojpeg.dylib",
                                         "libturbojpeg.dylib", nullptr};
    const PictureLibrary library(kNames);
    return library.isOpen() && library.find("tjInitDecompress", &init) &&
           library.find("tjDecompressHeader3", &header) &&
           library.find("tjDecompress2", &decompress) && library.find("tjGetErrorStr", &error) &&
           library.find("tjDestroy", &destroy);
  }
};

/// The fields of the segments before the first scan.
struct Segments {
  int orientation = 1;
  bool adobe = false;
};

Segments readSegments(const std::string& bytes) {
  Segments found;
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t at = 2;
  while (at + 4 <= bytes.size() && data[at] == 0xff) {
    const uint8_t marker = data[at + 1];
    if (marker == 0xff) {  // a filler
      ++at;
      continue;
    }
    const size_t length = size_t{data[at + 2]} << 8 | data[at + 3];
    if (marker == 0xda || length < 2 || at + 2 + length > bytes.size()) {
      break;
    }
    const uint8_t* const content = data + at + 4;
    if (marker == 0xe1 && length >= 8 && std::memcmp(content, "Exif\0\0", 6) == 0) {
      found.orientation = exifOrientation(content + 6, length - 8);
    }
    found.adobe |= marker == 0xee && length >= 7 && std::memcmp(content, "Adobe", 5) == 0;
    at += 2 + length;
  }
  return found;
}

/// `ink`: 255 is full. Adobe's programs write 255 for none.
void fromCmyk(const std::vector<uint8_t>& cmyk, bool ink, std::vector<uint8_t>* rgb) {
  const auto light = [ink](uint8_t value) { return ink ? 255u - value : value; };
  for (size_t i = 0; i < cmyk.size() / 4; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      (*rgb)[i * 3 + c] =
          static_cast<uint8_t>((light(cmyk[i * 4 + c]) * light(cmyk[i * 4 + 3]) + 127) / 255);
    }
  }
}

}  // namespace

DecodedPicture decodeJpeg(const std::string& bytes, const std::string& name) {
  TurboJpeg jpeg;
  if (!jpeg.load()) {
    failPicture(name, "JPEG needs libjpeg-turbo's libturbojpeg: install it, or convert to PNG");
  }
  struct Closing {
    const TurboJpeg& jpeg;
    void* handle;
    ~Closing() { handle != nullptr&& jpeg.destroy(handle) != 0; }
  };
  const Closing decoder{jpeg, jpeg.init()};
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0;
  int height = 0;
  int sampling = 0;
  int space = 0;
  if (decoder.handle == nullptr ||
      jpeg.header(decoder.handle, data, bytes.size(), &width, &height, &sampling, &space) != 0) {
    failPicture(name, "its header is damaged: get it again");
  }
  checkPictureSize(static_cast<uint64_t>(width), static_cast<uint64_t>(height), name);
  DecodedPicture picture;
  picture.width = static_cast<uint32_t>(width);
  picture.height = static_cast<uint32_t>(height);
  picture.rgb.resize(size_t{picture.width} * picture.height * 3);
  const bool cmyk = TurboJpeg::isCmyk(space);
  std::vector<uint8_t> inks(cmyk ? picture.rgb.size() / 3 * 4 : 0);
  const int result =
      jpeg.decompress(decoder.handle, data, bytes.size(), cmyk ? inks.data() : picture.rgb.data(),
                      width, 0, height, cmyk ? TurboJpeg::kCmyk : TurboJpeg::kRgb, 0);
  // Anything but a file that ends early is a warning that other programs pass over, too.
  if (result != 0 && std::strstr(jpeg.error(), "xtraneous") == nullptr) {
    failPicture(name, "it is damaged or cut off: get it again");
  }
  const Segments segments = readSegments(bytes);
  if (cmyk) {
    fromCmyk(inks, !segments.adobe, &picture.rgb);
  }
  applyOrientation(segments.orientation, &picture);
  return picture;
}

}  // namespace cli
