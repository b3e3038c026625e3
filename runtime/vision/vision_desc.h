// An encoder of pictures as plain numbers: a GGUF file of architecture "clip" ("mmproj"), checked.
//
// Sources: the file's keys and tensors as llama.cpp's converter writes them; the computation as the models' publishers
// define it (transformers: gemma4, qwen3_vl, lfm2_vl, idefics3).
#pragma once

#include "gguf/gguf.h"
#include "vision/stretch.h"

namespace oriel_internal {

/// How an encoder's result becomes rows of a text model; the file names it.
enum class Projector : uint8_t { kGemma4, kQwen3, kLfm2, kIdefics3 };

/// Blocks of an encoder; the largest published one has 40.
constexpr uint32_t kMaxVisionBlocks = 128;
/// Extra vectors that a row carries for the text model's first layers (Qwen3-VL).
constexpr uint32_t kMaxDeepstack = 8;
/// Pixels of a patch's side; published ones have 14 and 16.
constexpr uint32_t kMaxPatch = 64;
/// Patches of a row's side.
constexpr uint32_t kMaxMerge = 8;

struct VisionDesc {
  Projector projector = Projector::kGemma4;
  uint32_t n_embd = 0;
  uint32_t n_ff = 0;
  uint32_t n_blocks = 0;
  uint32_t n_heads = 0;       ///< divides n_embd; a head has a multiple of 4 values
  uint32_t patch = 0;         ///< pixels of a side
  uint32_t merge = 0;         ///< a row of the text model is made of merge x merge patches
  uint32_t grid = 0;          ///< rows of the position table: of a side; kGemma4: of each table
  uint32_t image_side = 0;    ///< kIdefics3: of a tile, in pixels
  uint32_t longest_side = 0;  ///< kIdefics3: of the picture before it is cut into tiles
  uint32_t n_text = 0;        ///< values of the text model's row
  uint32_t n_hidden = 0;      ///< between the projector's two matrices; 0: it has one
  uint32_t n_deepstack = 0;
  uint32_t deepstack[kMaxDeepstack] = {};  ///< blocks after which they are taken, rising
  float eps = 0;
  /// A byte v of colour c enters the encoder as v * scale[c] + offset[c].
  float scale[3] = {};
  float offset[3] = {};
  // Tensors that a file may leave out.
  bool standardised = false;  ///< kGemma4: std_bias and std_scale
  bool input_norm = false;    ///< kLfm2: of the projector
  bool swapped_ff = false;    ///< kIdefics3: old files call the first matrix ffn_down

  uint32_t headDim() const { return n_embd / n_heads; }
  /// Pixels of a side that become one row: sides of pictures are multiples of it.
  uint32_t cell() const { return patch * merge; }
  uint32_t patchValues() const { return 3 * patch * patch; }
  /// Patches come in blocks of merge x merge, so that those of a row of the text model are neighbours.
  bool inBlocks() const { return projector == Projector::kQwen3; }
};

/// Reads and checks every key and tensor. One line names what is wrong: ORIEL_ERROR_UNSUPPORTED for a projector that this
/// build does not run, else ORIEL_ERROR_FORMAT. *desc is complete on kOk only.
Status readVisionDesc(const GgufFile& file, const Log& log, VisionDesc* desc);

/// The encoder's rows must be as wide as the text model's, and carry as many extra vectors as it takes.
Status checkTextModel(const VisionDesc& vision, uint32_t n_embd, uint32_t n_deepstack,
                      const Log& log);

}  // namespace oriel_internal
