#include "cpu/simd.h"

#include "cpu/targets.h"
#include "os/thread.h"

namespace oriel {
namespace {

bool canRun(SimdTarget target) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool baseline = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                        __builtin_cpu_supports("sse4.2");
  const bool avx2 = baseline && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  switch (target) {
    case SimdTarget::kBaseline:
      return baseline;
    case SimdTarget::kAvx2:
      return ORIEL_CPU_HAS_AVX2 && avx2;  // F16C came before AVX2
    case SimdTarget::kAvx512:
      return ORIEL_CPU_HAS_AVX512 && avx2 && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
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
#if defined(__x86_64__)
      return "SSE4.2";
#elif defined(__aarch64__)
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

}  // namespace oriel
