// Ways to multiply a matrix with one vector, or with the vectors of a chunk, on a device, and which of them is used
// for which type of weights: the one that was measured as fastest, from a small file beside the compiled pipelines,
// else the standard. A file that is damaged, or of another build, device or driver, is as good as none.
#pragma once

#include "exec/executor.h"
#include "vulkan/device.h"

namespace oriel_internal {

enum class MatmulKernel : uint8_t {
  kFloat,   ///< matmul.comp
  kDot,     ///< matmul_dot.comp: packed integer dot products
  kHalf,    ///< matmul.comp in half precision
  kMatrix,  ///< matmul_matrix.comp: matrix units
};
constexpr uint32_t kMatmulKernels = 4;

struct MatmulCandidate {
  const char* name;
  MatmulKernel kernel;
  // As constants of the kernel; 0 lanes: divided as the kernel table says.
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;    ///< of a lane; with matrix units of a workgroup
  uint32_t tokens;  ///< of a workgroup, at most
};

class MatmulChoices {
 public:
  /// Reads the choices of this device from `dir` (null: none). There are no candidates but those that `verdict`, which
  /// outlives this, has not put aside.
  void create(const DeviceCaps& caps, const Verdict& verdict, const char* dir, const Log& log);

  /// Null: there is no such candidate for the type on this device.
  const MatmulCandidate* candidate(MatmulUse use, WeightType type, uint32_t index) const;
  uint32_t standard(MatmulUse use, WeightType type) const;
  uint32_t choice(MatmulUse use, WeightType type) const { return chosen_[at(use, type)]; }
  bool measured(MatmulUse use, WeightType type) const { return measured_[at(use, type)] != 0; }
  void take(MatmulUse use, WeightType type, uint32_t index) { chosen_[at(use, type)] = index; }
  /// Takes it and writes the file; false when there is no folder or it cannot be written.
  bool keep(MatmulUse use, WeightType type, uint32_t index, const Log& log);

  /// What `op` (kMatmul) on at most so many vectors is to be done with: in float as the kernel table says if it
  /// names a candidate that there is not, or needs kMatmulStaged and has none.
  const MatmulCandidate& candidateFor(const Op& op, uint32_t rows) const;
  /// Where in its table a candidate of candidateFor() stands, for Verdict.
  uint32_t positionOf(MatmulUse use, const MatmulCandidate& candidate) const;
  static uint32_t at(MatmulUse use, WeightType type) {
    return static_cast<uint32_t>(use) * kWeightTypes + static_cast<uint32_t>(type);
  }

 private:
  static constexpr uint32_t kChoices = kMatmulUses * kWeightTypes;
  bool runs(MatmulUse use, uint32_t position, WeightType type) const;

  DeviceCaps caps_ = {};
  const Verdict* verdict_ = nullptr;
  char path_[1024] = "";  // empty: no file
  uint32_t chosen_[kChoices] = {};
  uint32_t measured_[kChoices] = {};
  uint32_t types_[kMatmulKernels] = {};  // that have the kernel, as bits
};

}  // namespace oriel_internal
