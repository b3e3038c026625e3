// Pictures as an app gives them, resized on demand, and the description of an encoder.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/log.h"
#include "gguf/gguf.h"

namespace oriel_internal {

// A picture as an app hands it over.

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

// Reads and checks the description of a vision encoder: a GGUF file of architecture "clip" ("mmproj").
//
// Sources: llama.cpp's converter for keys and tensors, the models' publishers for the computation (transformers: gemma4,
// qwen3_vl, lfm2_vl, idefics3).

/// The projector in the file, which turns the encoder's result into rows of a text model.
enum class Projector : uint8_t { kGemma4, kQwen3, kLfm2, kIdefics3 };

/// Most blocks of an encoder. The largest published encoder has 40.
constexpr uint32_t kMaxVisionBlocks = 128;
/// Most extra vectors in a row for the text model's first layers (Qwen3-VL).
constexpr uint32_t kMaxDeepstack = 8;
/// Longest side of a patch, in pixels. Published encoders have 14 and 16.
constexpr uint32_t kMaxPatch = 64;
/// Most patches on a side of a row's square.
constexpr uint32_t kMaxMerge = 8;

struct VisionDesc {
  Projector projector = Projector::kGemma4;
  uint32_t n_embd = 0;
  uint32_t n_ff = 0;
  uint32_t n_blocks = 0;
  uint32_t n_heads = 0;       ///< divides n_embd; a head has a multiple of 4 values
  uint32_t patch = 0;         ///< side, in pixels
  uint32_t merge = 0;         ///< a row of the text model is made of merge x merge patches
  uint32_t grid = 0;          ///< positions on a side; kGemma4: rows of each position table
  uint32_t image_side = 0;    ///< kIdefics3: side of a tile, in pixels
  uint32_t longest_side = 0;  ///< kIdefics3: side of the picture before it is cut into tiles
  uint32_t n_text = 0;        ///< values of the text model's row
  uint32_t n_hidden =
      0;  ///< values between the projector's two matrices; 0: it has a single matrix
  uint32_t n_deepstack = 0;
  uint32_t deepstack[kMaxDeepstack] =
      {};  ///< blocks whose results are the extra vectors, ascending
  float eps = 0;
  /// A byte v of colour c enters the encoder as v * scale[c] + offset[c].
  float scale[3] = {};
  float offset[3] = {};
  // Tensors that a file may leave out.
  bool standardised = false;  ///< kGemma4: std_bias and std_scale
  bool input_norm = false;    ///< kLfm2: of the projector
  bool swapped_ff = false;    ///< kIdefics3: old files call the first matrix ffn_down

  uint32_t headDim() const { return n_embd / n_heads; }
  /// Side of the square that becomes one row, in pixels. Sides of pictures are multiples of it.
  uint32_t cell() const { return patch * merge; }
  uint32_t patchValues() const { return 3 * patch * patch; }
};

/// Reads and checks every key and tensor. On failure logs one line and returns ORIEL_ERROR_UNSUPPORTED for a projector
/// that this build does not run, else ORIEL_ERROR_FORMAT. *desc is complete only after kOk.
Status readVisionDesc(const GgufFile& file, const Log& log, VisionDesc* desc);

/// The encoder's rows must be as wide as the text model's, and carry as many extra vectors as it takes.
Status checkTextModel(const VisionDesc& vision, uint32_t n_embd, uint32_t n_deepstack,
                      const Log& log);

}  // namespace oriel_internal
