// The targets that kernels are compiled for, their choice, and the instruction sets of a processor. Highway's foreach_target compiles kernel files once
// per target. Each target has its own namespace, and tables of its functions are selected at load.
// The choice is not stored in a global.
#pragma once

#include <cstdint>
#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

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

/// True for kernels that multiply faster with activations of 8 bits than of 16 (notes/performance.md). Only products of
/// VNNI do; on Arm 8 bits were not measured.
constexpr bool gainsFrom8Bits(SimdTarget target) { return target == SimdTarget::kAvx512; }

/// The best compiled target that this processor supports, up to `most`. False: not even the
/// baseline.
bool chooseSimdTarget(SimdTarget most, SimdTarget* target);

#if defined(__x86_64__) || defined(_M_X64)
// Instruction sets that this x86 processor and its operating system support. GCC and Clang have a built-in query; with
// Microsoft's compiler the program queries the processor directly.

struct X86Features {
  bool baseline = false;  ///< SSSE3, SSE4.1 and SSE4.2
  bool avx2 = false;      ///< also AVX2, BMI, BMI2, FMA
  bool avx512 = false;    ///< also AVX-512 F, VL, DQ, BW and VNNI
};

/// EAX, EBX, ECX and EDX.
inline void askProcessor(uint32_t leaf, uint32_t part, uint32_t (&answer)[4]) {
#if defined(_MSC_VER)
  int registers[4];
  __cpuidex(registers, static_cast<int>(leaf), static_cast<int>(part));
  for (int i = 0; i < 4; ++i) {
    answer[i] = static_cast<uint32_t>(registers[i]);
  }
#else
  __cpuid_count(leaf, part, answer[0], answer[1], answer[2], answer[3]);
#endif
}

/// XCR0: the registers that the system saves per thread.
inline uint64_t keptRegisters() {
#if defined(_MSC_VER)
  return _xgetbv(0);
#else
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
#endif
}

/// Bits as in Intel's manual, volume 2, CPUID.
inline X86Features x86FeaturesAsked() {
  const auto has = [](uint32_t word, uint32_t bit) { return (word >> bit & 1) != 0; };
  X86Features found;
  uint32_t most[4];
  uint32_t one[4];
  askProcessor(0, 0, most);
  askProcessor(1, 0, one);
  found.baseline = has(one[2], 9) && has(one[2], 19) && has(one[2], 20);
  if (most[0] < 7 || !has(one[2], 27)) {  // 27: the system reports the saved registers
    return found;
  }
  uint32_t seven[4];
  askProcessor(7, 0, seven);
  constexpr uint64_t kYmm = 0x6;   // XMM and the upper halves of YMM
  constexpr uint64_t kZmm = 0xe6;  // also masks, ZMM
  const uint64_t kept = keptRegisters();
  found.avx2 = found.baseline && (kept & kYmm) == kYmm && has(one[2], 28) && has(one[2], 12) &&
               has(seven[1], 3) && has(seven[1], 5) && has(seven[1], 8);
  found.avx512 = found.avx2 && (kept & kZmm) == kZmm && has(seven[1], 16) && has(seven[1], 17) &&
                 has(seven[1], 30) && has(seven[1], 31) && has(seven[2], 11);
  return found;
}

inline X86Features x86Features() {
#if defined(_MSC_VER)
  return x86FeaturesAsked();
#else
  __builtin_cpu_init();
  X86Features found;
  found.baseline = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
                   __builtin_cpu_supports("sse4.2");
  found.avx2 = found.baseline && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
               __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  found.avx512 = found.avx2 && __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
  return found;
#endif
}
#endif  // x86

}  // namespace oriel_internal
