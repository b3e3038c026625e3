// Included by kernel files before and between Highway's headers: lists the compiled targets and makes
// tables of their kernels.
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "cpu/matmul.cpp"
//   #include "cpu/targets.h"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   HWY_BEFORE_NAMESPACE(); namespace oriel_internal { namespace HWY_NAMESPACE { ... } } HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace oriel_internal { const Table& table(SimdTarget t) { return ORIEL_CPU_PICK(t, kTable); } }
//   #endif
#ifndef ORIEL_CPU_TARGETS_H_
#define ORIEL_CPU_TARGETS_H_

#include "cpu/simd.h"

#if defined(__x86_64__) || defined(_M_X64)
// Below SSE4.2 the reference executor runs. Of the additions of AVX3_DL and later to AVX3, only VNNI matters;
// vectors-inl.h adds it.
#define HWY_BASELINE_TARGETS HWY_SSE4
#define HWY_DISABLE_PCLMUL_AES
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR)
#else
// Vectors of unknown length do not fit the weight layout's groups of 16 rows.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
// Checks in Highway's debug builds would need its library; Oriel uses its headers only.
#define HWY_IS_DEBUG_BUILD 0

#include <hwy/detect_targets.h>
// Targets that older versions do not know.
#ifndef HWY_AVX3_ZEN4
#define HWY_AVX3_ZEN4 0
#endif
#ifndef HWY_AVX3_SPR
#define HWY_AVX3_SPR 0
#endif

// The object `name` of the target's namespace.
#if (HWY_TARGETS & HWY_AVX3) != 0
#define ORIEL_CPU_HAS_AVX512 1
#define ORIEL_CPU_AVX512(name) N_AVX3::name
#else
#define ORIEL_CPU_HAS_AVX512 0
#define ORIEL_CPU_AVX512(name) HWY_STATIC_DISPATCH(name)
#endif
#if (HWY_TARGETS & HWY_AVX2) != 0
#define ORIEL_CPU_HAS_AVX2 1
#define ORIEL_CPU_AVX2(name) N_AVX2::name
#else
#define ORIEL_CPU_HAS_AVX2 0
#define ORIEL_CPU_AVX2(name) HWY_STATIC_DISPATCH(name)
#endif
#define ORIEL_CPU_PICK(target, name)                                          \
  ((target) == ::oriel_internal::SimdTarget::kAvx512 ? ORIEL_CPU_AVX512(name) \
   : (target) == ::oriel_internal::SimdTarget::kAvx2 ? ORIEL_CPU_AVX2(name)   \
                                                     : HWY_STATIC_DISPATCH(name))

#endif  // ORIEL_CPU_TARGETS_H_
