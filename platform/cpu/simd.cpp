#include "cpu/simd.h"

#include "cpu/targets.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

bool canRun(SimdTarget target) {
#if defined(__x86_64__) || defined(_M_X64)
  const X86Features has = x86Features();
  switch (target) {
    case SimdTarget::kBaseline:
      return has.baseline;
    case SimdTarget::kAvx2:
      return ORIEL_CPU_HAS_AVX2 && has.avx2;  // F16C came before AVX2
    case SimdTarget::kAvx512:
      return ORIEL_CPU_HAS_AVX512 && has.avx512;
    case SimdTarget::kNeonDot:
      return false;
  }
  return false;
#else
#ifdef ORIEL_CPU_DOT_PRODUCTS
  if (target == SimdTarget::kNeonDot) {
    return processorHasDotProducts();
  }
#endif
  return target == SimdTarget::kBaseline;
#endif
}

}  // namespace

const char* simdTargetName(SimdTarget target) {
  switch (target) {
    case SimdTarget::kBaseline:
#if defined(__x86_64__) || defined(_M_X64)
      return "SSE4.2";
#elif defined(__aarch64__) || defined(_M_ARM64)
      return "NEON";
#elif defined(__wasm_simd128__)
      return "WebAssembly SIMD";
#else
      return "portable";
#endif
    case SimdTarget::kAvx2:
      return "AVX2";
    case SimdTarget::kAvx512:
      return "AVX-512 VNNI";
    case SimdTarget::kNeonDot:
      return "NEON with dot products";
  }
  return "?";
}

bool chooseSimdTarget(SimdTarget most, SimdTarget* target) {
  for (int t = static_cast<int>(most); t >= 0; --t) {
    *target = static_cast<SimdTarget>(t);
    if (canRun(*target)) {
      return true;
    }
  }
  return false;
}

}  // namespace oriel_internal
