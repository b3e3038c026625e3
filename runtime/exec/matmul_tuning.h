// The matmul candidates of a device that has several for a type. The fastest depends on the device and on the number of
// vectors; speed/tune.h measures it.
#pragma once

#include "plan/op.h"

namespace oriel_internal {

/// The number of vectors in a product: one when decoding and in a head with one output, or several in a chunk or with
/// several outputs.
enum class MatmulUse : uint8_t { kVector, kChunk };
constexpr uint32_t kMatmulUses = 2;

class MatmulTuning {
 public:
  /// The name of candidate `index`; null: this device has no such candidate for the type.
  virtual const char* candidateName(MatmulUse, WeightType, uint32_t index) const = 0;
  /// The candidate in use.
  virtual uint32_t choice(MatmulUse, WeightType) const = 0;
  /// The default candidate, without measurements.
  virtual uint32_t standard(MatmulUse, WeightType) const = 0;
  /// True if the candidate in use was measured, now or earlier.
  virtual bool isMeasured(MatmulUse, WeightType) const = 0;
  /// Selects the candidate.
  virtual Status take(MatmulUse, WeightType, uint32_t index) = 0;
  /// Saves the candidate in the cache folder for later executors; false: no folder, or an error.
  virtual bool keep(MatmulUse, WeightType, uint32_t index) = 0;

 protected:
  ~MatmulTuning() = default;
};

}  // namespace oriel_internal
