// Ways to multiply matrices of a type, of a device that has several. Which is fastest is a matter of the device and of how
// many vectors there are: speed/tune.h measures it.
#pragma once

#include "plan/op.h"

namespace oriel_internal {

/// How many vectors a product has: one, when decoding and in a head of one output, or those of a chunk or of
/// several outputs.
enum class MatmulUse : uint8_t { kVector, kChunk };
constexpr uint32_t kMatmulUses = 2;

class MatmulTuning {
 public:
  /// The name of candidate `index`; null: there is no such candidate for this type here.
  virtual const char* candidateName(MatmulUse, WeightType, uint32_t index) const = 0;
  /// What is used now.
  virtual uint32_t choice(MatmulUse, WeightType) const = 0;
  /// What is used where nothing was measured.
  virtual uint32_t standard(MatmulUse, WeightType) const = 0;
  /// Whether what is used was measured, at whatever time.
  virtual bool isMeasured(MatmulUse, WeightType) const = 0;
  /// From now on uses the candidate.
  virtual Status take(MatmulUse, WeightType, uint32_t index) = 0;
  /// Keeps the candidate in the cache folder for executors to come; false: there is none, or it failed.
  virtual bool keep(MatmulUse, WeightType, uint32_t index) = 0;

 protected:
  ~MatmulTuning() = default;
};

}  // namespace oriel_internal
