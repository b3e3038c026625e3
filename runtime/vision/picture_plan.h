// The plan of a vision encoder: its ops, and which weights are in memory when they run.
//
// An encoder runs in four phases with a set of weights each. All sets are loaded to the same place, one after the other:
//
//   kPatches    vectors of patches: colours times a matrix, added to the positions
//   kBlock      a block. First the keys and values of all patches (kKeys), then everything else (kRest)
//   kDeepstack  rows for the text model's first layers, from a block's result (kQwen3)
//   kProjector  rows of the text model
//
// Patches go through a phase in strips of Plan::chunk_tokens. PictureLayout::x holds the vectors of all patches, and
// PictureLayout::strip the vectors of a strip.
#pragma once

#include <cmath>

#include "exec/executor.h"
#include "vision/vision_desc.h"

namespace oriel_internal {

enum class WeightSet : uint8_t { kPatches, kBlock, kDeepstack, kProjector };
constexpr uint32_t kWeightSets = 4;

// The runs of the phases. Lists of a picture's plan have up to chunk_tokens rows, and none is a head.
constexpr StepRun kPatchesRun = StepRun::kDecode;
constexpr StepRun kKeysRun = StepRun::kChunk;
constexpr StepRun kRestRun = StepRun::kDraft;
constexpr StepRun kProjectorRun = StepRun::kTail;
/// kGemma4: the means of cells, before kProjectorRun. kQwen3: WeightSet::kDeepstack. Takes 2 rows or more.
constexpr StepRun kCellsRun = StepRun::kHead;

/// A vector of weights, as the executor gets it.
struct PictureVector {
  enum class From : uint8_t {
    kTensor,  ///< zeros if the file has none
    kScale,   ///< the same with a one
    kLimits,  ///< two limits of a product; `tensor` is their number
  };
  BufferRef place;
  From from = From::kTensor;
  uint32_t tensor = 0;  ///< index in the set
  uint32_t first = 0;   ///< value of the tensor
  uint32_t cols = 0;
  uint32_t repeat = 1;
  uint32_t head_dim = 0;  ///< 0: in the file's order; else as turnedRow()
  float factor = 1;
};

/// The place of a tensor in the file, for a block.
struct PicturePlace {
  uint64_t offset = 0;
  uint32_t type = 0;
  bool exists = false;
};

struct PictureWeights {
  static constexpr uint32_t kMostTensors = 24;
  static constexpr uint32_t kMostVectors = 32;

  uint32_t instances = 0;  ///< blocks
  uint32_t n_tensors = 0;
  uint32_t n_uploads = 0;
  uint32_t n_vectors = 0;
  PicturePlace* places = nullptr;  ///< [instances][kMostTensors]
  Upload* uploads = nullptr;       ///< of matrices; tensor_offset is set for each block
  uint8_t* tensor_of = nullptr;    ///< index of an upload's tensor
  PictureVector* vectors = nullptr;
};

/// Limits of a product, as in the file; infinite if it has none.
constexpr uint32_t kLimitedMatrices = 7;
struct PictureLimits {
  float least = -HUGE_VALF;
  float most = HUGE_VALF;
};

struct PicturePlan {
  Plan plan;
  uint32_t most_patches = 0;  ///< of a tile
  uint32_t rotation_words = 0;
  BufferRef patches;  ///< [chunk_tokens][patch_stride]
  BufferRef strip;    ///< [chunk_tokens][n_embd]
  BufferRef x;        ///< [most_patches][n_embd]
  BufferRef out;      ///< rows of the text model: [chunk_tokens / merge^2][text_stride]
  uint32_t patch_stride = 0;
  uint32_t text_stride = 0;
  BufferRef ones;  ///< [ones_count], written once
  uint32_t ones_count = 0;
  PictureWeights sets[kWeightSets];
  PictureLimits* limits = nullptr;  ///< [n_blocks][kLimitedMatrices][2]: of inputs, of outputs
  uint32_t upload_half = 0;
  uint64_t read_bytes = 0;  ///< room for reading weights

  PictureWeights& set(WeightSet which) { return sets[static_cast<uint32_t>(which)]; }
};

/// Row of a matrix of queries or keys in the file, for row `row` of a head in memory. Kernels turn pairs half a head
/// apart; in files of kGemma4 pairs are a quarter apart, in each half of a head.
constexpr uint32_t turnedRow(uint32_t row, uint32_t head_dim) {
  const uint32_t quarter = head_dim / 4;
  const uint32_t of = row / quarter;
  return row + (of == 1 ? quarter : 0) - (of == 2 ? quarter : 0);
}

/// `arena` may be measuring. ORIEL_ERROR_UNSUPPORTED for tensor types or sizes that this build does not run.
Status buildPicturePlan(const GgufFile& file, const VisionDesc& desc, uint32_t most_patches,
                        const Log& log, Arena* arena, PicturePlan* out);

}  // namespace oriel_internal
