// Which vector instructions kernels are compiled for, and how one is chosen. Kernel files are compiled once
// per target by Highway's foreach_target; each target's functions stand in a namespace of their own, and
// tables of them are picked at load. No global remembers the choice.
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

/// The best that is compiled in and that this processor runs, no better than `most`. False: not even the
/// baseline.
bool chooseSimdTarget(SimdTarget most, SimdTarget* target);

}  // namespace oriel_internal
