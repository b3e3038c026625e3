// The targets that kernels are compiled for, and their choice. Highway's foreach_target compiles kernel files once
// per target. Each target has its own namespace, and tables of its functions are selected at load.
// The choice is not stored in a global.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// In rising order of preference.
enum class SimdTarget : uint8_t {
  kBaseline,  ///< x86: SSE4.2; Arm: NEON; else Highway's baseline
  kAvx2,      ///< with FMA and F16C
  kAvx512,    ///< with VNNI, as in Ice Lake and Zen 4
  kNeonDot,   ///< NEON with byte dot products, as in Cortex-A55, A76 and later
};
constexpr uint32_t kSimdTargets = 4;
constexpr SimdTarget kBestSimdTarget = static_cast<SimdTarget>(kSimdTargets - 1);
const char* simdTargetName(SimdTarget target);

/// The best compiled target that this processor supports, up to `most`. False: not even the
/// baseline.
bool chooseSimdTarget(SimdTarget most, SimdTarget* target);

}  // namespace oriel_internal
