// Pictures in files: JPEG, PNG, and the choice of a decoder.
#include "pictures.h"

#include <csetjmp>
#include <cstring>

#ifndef _WIN32
#include <dlfcn.h>
#endif

#include "output.h"

namespace cli {

// JPEG by libjpeg-turbo's TurboJPEG interface, whose objects are opaque: no header of it is needed.

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

// PNG by libpng 1.6, whose objects are opaque: no header of it is needed.

namespace {

struct Png {
  using Handle = void*;
  using OnError = void (*)(Handle, const char*);
  using OnRead = void (*)(Handle, unsigned char*, size_t);

  unsigned (*version)() = nullptr;
  Handle (*create)(const char*, void*, OnError, OnError) = nullptr;
  Handle (*createInfo)(Handle) = nullptr;
  void (*destroy)(Handle*, Handle*, Handle*) = nullptr;
  void (*setRead)(Handle, void*, OnRead) = nullptr;
  void (*setLimits)(Handle, uint32_t, uint32_t) = nullptr;
  void (*readInfo)(Handle, Handle) = nullptr;
  uint32_t (*width)(Handle, Handle) = nullptr;
  uint32_t (*height)(Handle, Handle) = nullptr;
  void (*expand)(Handle) = nullptr;
  void (*scale16)(Handle) = nullptr;
  void (*stripAlpha)(Handle) = nullptr;
  void (*greyToRgb)(Handle) = nullptr;
  int (*interlace)(Handle) = nullptr;
  void (*update)(Handle, Handle) = nullptr;
  size_t (*rowBytes)(Handle, Handle) = nullptr;
  void (*readImage)(Handle, unsigned char**) = nullptr;
  void (*readEnd)(Handle, Handle) = nullptr;
  uint32_t (*getExif)(Handle, Handle, uint32_t*, unsigned char**) = nullptr;  ///< may be null

  bool load() {
    static const char* const kNames[] = {"libpng16.so.16", "libpng16.16.dylib",
                                         "/opt/homebrew/lib/libpng16.dylib", "libpng16.dylib",
                                         nullptr};
    const PictureLibrary library(kNames);
    if (!library.isOpen()) {
      return false;
    }
    (void)library.find("png_get_eXIf_1", &getExif);
    return library.find("png_access_version_number", &version) &&
           library.find("png_create_read_struct", &create) &&
           library.find("png_create_info_struct", &createInfo) &&
           library.find("png_destroy_read_struct", &destroy) &&
           library.find("png_set_read_fn", &setRead) &&
           library.find("png_set_user_limits", &setLimits) &&
           library.find("png_read_info", &readInfo) &&
           library.find("png_get_image_width", &width) &&
           library.find("png_get_image_height", &height) &&
           library.find("png_set_expand", &expand) && library.find("png_set_scale_16", &scale16) &&
           library.find("png_set_strip_alpha", &stripAlpha) &&
           library.find("png_set_gray_to_rgb", &greyToRgb) &&
           library.find("png_set_interlace_handling", &interlace) &&
           library.find("png_read_update_info", &update) &&
           library.find("png_get_rowbytes", &rowBytes) &&
           library.find("png_read_image", &readImage) && library.find("png_read_end", &readEnd);
  }
};

/// Everything that an error must give back: it leaves libpng by a jump, past destructors.
struct Reading {
  Png png;
  Png::Handle handle = nullptr;
  Png::Handle info = nullptr;
  const uint8_t* bytes = nullptr;
  size_t left = 0;
  std::jmp_buf failed;
  DecodedPicture picture;
  std::vector<unsigned char*> rows;
  int orientation = 1;

  ~Reading() { handle != nullptr ? png.destroy(&handle, &info, nullptr) : void(); }
};

thread_local Reading* reading = nullptr;

void onError(Png::Handle, const char*) { std::longjmp(reading->failed, 1); }
void onWarning(Png::Handle, const char*) {}
void onRead(Png::Handle, unsigned char* to, size_t bytes) {
  if (bytes > reading->left) {
    std::longjmp(reading->failed, 1);
  }
  std::memcpy(to, reading->bytes, bytes);
  reading->bytes += bytes;
  reading->left -= bytes;
}

// The steps below have no objects with destructors: an error jumps out of them.
bool readHeader(Reading* r) {
  if (setjmp(r->failed) != 0) {
    return false;
  }
  r->png.setRead(r->handle, nullptr, onRead);
  r->png.setLimits(r->handle, 0x7fffffff, 0x7fffffff);
  r->png.readInfo(r->handle, r->info);
  r->picture.width = r->png.width(r->handle, r->info);
  r->picture.height = r->png.height(r->handle, r->info);
  return true;
}

bool prepareRows(Reading* r) {
  if (setjmp(r->failed) != 0) {
    return false;
  }
  r->png.expand(r->handle);
  r->png.scale16(r->handle);
  r->png.stripAlpha(r->handle);
  r->png.greyToRgb(r->handle);
  (void)r->png.interlace(r->handle);
  r->png.update(r->handle, r->info);
  return r->png.rowBytes(r->handle, r->info) == size_t{r->picture.width} * 3;
}

bool readPixels(Reading* r) {
  if (setjmp(r->failed) != 0) {
    return false;
  }
  r->png.readImage(r->handle, r->rows.data());
  r->png.readEnd(r->handle, r->info);
  uint32_t exif_bytes = 0;
  unsigned char* exif = nullptr;
  if (r->png.getExif != nullptr && r->png.getExif(r->handle, r->info, &exif_bytes, &exif) != 0) {
    r->orientation = exifOrientation(exif, exif_bytes);
  }
  return true;
}

}  // namespace

DecodedPicture decodePng(const std::string& bytes, const std::string& name) {
  Reading r;
  if (!r.png.load()) {
    failPicture(name, "PNG needs libpng 1.6: install it, or convert to JPEG");
  }
  const unsigned version = r.png.version();
  const std::string text = std::to_string(version / 10000) + "." +
                           std::to_string(version / 100 % 100) + "." +
                           std::to_string(version % 100);
  reading = &r;
  r.bytes = reinterpret_cast<const uint8_t*>(bytes.data());
  r.left = bytes.size();
  r.handle = r.png.create(text.c_str(), nullptr, onError, onWarning);
  r.info = r.handle == nullptr ? nullptr : r.png.createInfo(r.handle);
  if (r.info == nullptr || !readHeader(&r)) {
    failPicture(name, "its header is damaged: get it again");
  }
  checkPictureSize(r.picture.width, r.picture.height, name);
  const size_t row_bytes = size_t{r.picture.width} * 3;
  r.picture.rgb.resize(row_bytes * r.picture.height);
  for (uint32_t y = 0; y < r.picture.height; ++y) {
    r.rows.push_back(r.picture.rgb.data() + row_bytes * y);
  }
  if (!prepareRows(&r) || !readPixels(&r)) {
    failPicture(name, "it is damaged or cut off: get it again");
  }
  applyOrientation(r.orientation, &r.picture);
  return std::move(r.picture);
}

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
