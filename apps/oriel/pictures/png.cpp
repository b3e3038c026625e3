// PNG by libpng 1.6, whose objects are opaque: no header of it is needed.
#include <csetjmp>
#include <cstring>

#include "pictures/picture_file.h"

namespace cli {
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

}  // namespace cli
