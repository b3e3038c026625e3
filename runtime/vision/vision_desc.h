// Reads and checks the description of a vision encoder: a GGUF file of architecture "clip" ("mmproj").
//
// Sources: llama.cpp's converter for keys and tensors, the models' publishers for the computation (transformers: gemma4,
// qwen3_vl, lfm2_vl, idefics3).
#pragma once

#include "gguf/gguf.h"
#include "vision/stretch.h"

namespace oriel_internal {

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
