// Times the library's own kernels on one device with made-up layers, and turns the times into rates.
#pragma once

#include "budget/speed.h"
#include "exec/executor.h"
#include "exec/load_weights.h"
#include "speed/probe_file.h"

namespace oriel_internal {

/// How an executor for a plan is made; the device is its business.
struct ExecutorMaker {
  Status (*make)(const void* context, const Plan& plan, const ExecutorMemory& memory,
                 Executor** executor) = nullptr;
  const void* context = nullptr;
};

/// The model that rates are for.
struct SpeedTarget {
  ProbeShape shape;  ///< tensor_type does not count
  /// By type: how many are in layers and how many in the output matrix.
  WorkShape::Matrices matrices[kMaxWorkTypes];
  uint32_t kernels[kMaxWorkTypes] = {};  ///< which of the device's ways to multiply each type
  uint32_t n_matrices = 0;
  uint64_t features = 0;  ///< a hash of the device's optional features in use

  /// Equal for models whose rates are the same.
  uint64_t hash() const;
};

SpeedTarget speedTargetOf(const ModelDesc& model, const WorkShape& work);
/// No model in particular: layers of a middling size in F16, Q8_0 and Q4_0.
SpeedTarget anySpeedTarget();

/// Fills in the rates (types that no kernel takes are left out), or, unless `again`, takes from `cache_dir` (may
/// be null) what was measured before with the kernels that are used now. `progress` is told of nothing that is
/// read.
Status measureSpeed(const ExecutorMaker& maker, const SpeedTarget& target, const char* cache_dir,
                    bool again, const LoadProgress& progress, const oriel_allocator& allocator,
                    const Log& log, DeviceSpeed* speed);

}  // namespace oriel_internal
