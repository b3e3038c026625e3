// Ways to multiply a matrix with one vector on a device, and which of them is used for which type of weights:
// the one that was measured as fastest, from a small file beside the compiled pipelines, else the standard.
// A file that is damaged, or of another build, device or driver, is as good as none.
#pragma once

#include "plan/plan.h"
#include "vulkan/device.h"

namespace oriel {

struct MatvecCandidate {
  const char* name;
  bool dot;  ///< stages the input and uses packed integer dot products
  // As constants of matmul.comp; 0 lanes: divided as the kernel table says.
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;
};

class MatvecChoices {
 public:
  /// Reads the choices of this device from `dir` (null: none).
  void create(const DeviceCaps& caps, const char* dir, const Log& log);

  /// Null: there is no such candidate for the type on this device.
  const MatvecCandidate* candidate(WeightType type, uint32_t index) const;
  uint32_t standard(WeightType type) const;
  uint32_t choice(WeightType type) const { return chosen_[static_cast<uint32_t>(type)]; }
  bool measured(WeightType type) const { return measured_[static_cast<uint32_t>(type)] != 0; }
  void take(WeightType type, uint32_t index) { chosen_[static_cast<uint32_t>(type)] = index; }
  /// Takes it and writes the file; false when there is no folder or it cannot be written.
  bool keep(WeightType type, uint32_t index, const Log& log);

  /// What `op` (kMatmul) on so many tokens is to be done with; null: not one vector.
  const MatvecCandidate* candidateFor(const Op& op, uint32_t tokens) const;

 private:
  bool usesDot(WeightType type) const;

  DeviceCaps caps_ = {};
  char path_[1024] = "";  // empty: no file
  uint32_t chosen_[kWeightTypes] = {};
  uint32_t measured_[kWeightTypes] = {};
};

}  // namespace oriel
