// A picture as an app hands it over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"

namespace oriel_internal {

/// Longest side of a picture, in pixels. Bounds the memory of resizing; phones' largest photos have 16,320.
constexpr uint32_t kMaxPictureSide = 16384;

/// Order of a pixel's bytes. Alpha is ignored.
enum class PixelOrder : uint8_t { kRgb8, kRgba8, kBgra8 };

struct Picture {
  const uint8_t* pixels = nullptr;  ///< top row first
  uint32_t width = 0;               ///< pixels, 1 .. kMaxPictureSide
  uint32_t height = 0;
  size_t stride = 0;  ///< bytes from one row to the next
  PixelOrder order = PixelOrder::kRgb8;
};

constexpr uint32_t bytesOfPixel(PixelOrder order) { return order == PixelOrder::kRgb8 ? 3 : 4; }

/// ORIEL_ERROR_ARGUMENT for no pixels, a side out of range or rows that overlap.
Status checkPicture(const Picture& picture, const Log& log);

// Resizes a picture the way the encoders' publishers do: antialiased, stretched to the new size.
//
// - Two passes of 8-bit pixels, columns first, with weights of 22 fractional bits: Pillow's rule, so pixels are equal.
// - Rows are made on demand from the top down. Memory depends on the widths and on the ratio of the heights, not on the
//   picture's area.
// - Sources of the kernels: bicubic is Keys 1981 with a = -1/2, Lanczos has 3 lobes, bilinear is the triangle. When a
//   picture shrinks, a kernel is widened by the ratio.

enum class Filter : uint8_t { kBilinear, kBicubic, kLanczos };

struct PictureSize {
  uint32_t width = 0;
  uint32_t height = 0;
};

/// A rectangle of pixels.
struct PictureArea {
  uint32_t x = 0;
  uint32_t y = 0;
  uint32_t width = 0;
  uint32_t height = 0;
};

/// A series of resizings, and the requested area of the last size.
struct Stretches {
  static constexpr uint32_t kMost = 3;
  Filter filter = Filter::kBilinear;
  uint32_t count = 0;  ///< 0: the picture is not stretched
  PictureSize sizes[kMost];
  PictureArea area;
};

/// The rows of a stretched picture.
class StretchedRows {
 public:
  /// Takes its memory from `arena`. With a measuring arena, row() must not be called. `picture` must be checked, and
  /// must outlive the last call of row().
  void create(const Picture& picture, const Stretches& stretches, Arena* arena);

  /// Row `y` of the area, as 3 bytes a pixel; valid until the next call. `y` must not decrease from call to call.
  const uint8_t* row(uint32_t y);

 private:
  /// The input pixels that an output column or row reads.
  struct Taps {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  /// One resizing.
  struct Stage {
    PictureSize from;
    PictureSize to;
    PictureArea area;           ///< of `to`
    uint32_t from_x = 0;        ///< first column of the rows below
    uint32_t columns_each = 0;  ///< weights kept for each column
    uint32_t rows_kept = 0;
    uint32_t next = 0;                  ///< row of `from` that comes next
    Taps* columns = nullptr;            ///< [area.width]
    int32_t* column_weights = nullptr;  ///< [area.width][columns_each]
    int32_t* row_weights = nullptr;     ///< [rows_kept]
    uint8_t* rows = nullptr;            ///< [rows_kept][area.width][3]: a ring
    int32_t* sums = nullptr;            ///< [area.width][3]
    uint8_t* out = nullptr;             ///< [area.width][3]
  };

  static Taps tapsOf(Filter filter, uint32_t from, uint32_t to, uint32_t index, int32_t* weights);
  const uint8_t* pictureRow(uint32_t y);
  const uint8_t* stageRow(uint32_t stage, uint32_t y);
  void stretchColumns(const Stage& stage, const uint8_t* from, uint8_t* to) const;

  Picture picture_;
  Filter filter_ = Filter::kBilinear;
  uint32_t n_stages_ = 0;
  Stage stages_[Stretches::kMost];
  PictureArea area_;        ///< of the picture, where nothing is stretched
  uint32_t picture_x_ = 0;  ///< columns of the picture that are read
  uint32_t picture_columns_ = 0;
  uint8_t* picture_row_ = nullptr;
};

}  // namespace oriel_internal
