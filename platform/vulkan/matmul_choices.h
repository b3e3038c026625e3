// Kernel candidates for matmul on a device, for a single vector and for a chunk, and the choice per weight type.
// The fastest measured candidate is read from a small file next to the compiled pipelines; without one, the standard
// candidate applies. A damaged file, or a file of another build, device or driver, is ignored.
#pragma once

#include "exec/executor.h"
#include "vulkan/device.h"
#include "vulkan/device_shapes.h"

namespace oriel_internal {

struct MatmulCandidate {
  const char* name;
  MatmulKernel kernel;
  // Constants of the kernel; 0 lanes: the kernel table's division.
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;    ///< per lane; with matrix units per workgroup
  uint32_t tokens;  ///< per workgroup, at most
};

class MatmulChoices {
 public:
  /// Reads the choices of this device from `dir` (null: none). `verdict` excludes candidates that gave wrong results; it
  /// must outlive this object.
  void create(const DeviceCaps& caps, const Verdict& verdict, const char* dir, const Log& log);

  /// Null if the device has no such candidate for the type.
  const MatmulCandidate* candidate(MatmulUse use, WeightType type, uint32_t index) const;
  uint32_t standard(MatmulUse use, WeightType type) const;
  uint32_t choice(MatmulUse use, WeightType type) const { return chosen_[at(use, type)]; }
  bool measured(MatmulUse use, WeightType type) const { return measured_[at(use, type)] != 0; }
  void take(MatmulUse use, WeightType type, uint32_t index) { chosen_[at(use, type)] = index; }
  /// Takes the candidate and writes the file. False without a folder, or if writing fails.
  bool keep(MatmulUse use, WeightType type, uint32_t index, const Log& log);

  /// The candidate for `op` (kMatmul) on at most `rows` vectors. Falls back to the float kernel of the kernel table if
  /// the op names a missing candidate, or if the candidate needs kMatmulStaged and the op lacks it.
  const MatmulCandidate& candidateFor(const Op& op, uint32_t rows) const;
  /// Index of a result of candidateFor() in its table, for Verdict.
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
  uint32_t types_[kMatmulKernels] = {};  // types with the kernel, as bits
};

}  // namespace oriel_internal
