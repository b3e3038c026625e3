#include "cpu/kernels.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matmul.cpp"
#include "cpu/targets.h"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matmul-inl.h"
#include "cpu/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

template <int32_t kMost>
void quantiseTiles(const float* const* rows, uint32_t count, uint32_t units, void* out) {
  IntTile* tiles = static_cast<IntTile*>(out);
  for (uint32_t u = 0; u < units; ++u) {
    IntTile& tile = tiles[u];
#if HWY_TARGET == HWY_AVX3
    TileMaker<kMost>::make(rows, count, u, &tile);
#else
    if (count < kTileTokens) {
      tile = IntTile();
    }
    for (uint32_t t = 0; t < count; ++t) {
      Codes codes;
      quantiseUnit(rows[t] + u * kUnit, kMost, &codes);
      IntUnit unit;
      storePairs(codes, unit.values);
      for (uint32_t i = 0; i < 16; ++i) {
        hwy::CopyBytes<4>(unit.values + 2 * i, tile.values[i][t]);
      }
      storeSums(codes.sums, t, &tile.sums);
    }
#endif
  }
}

#include "cpu/matmul_run-inl.h"

const MatmulKernels kMatmulKernels = HWY_NAMESPACE::kernelsWith<kMostCode>(
    &run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>);
const MatmulKernels kByteMatmulKernels = HWY_NAMESPACE::kernelsWith<kMostOfBytes>(
    &run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>);

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {

const MatmulKernels& matmulKernels(SimdTarget target, uint32_t activation_bits) {
  const bool bytes = activation_bits == 8;
#ifdef ORIEL_CPU_DOT_PRODUCTS
  if (target == SimdTarget::kNeonDot) {
    return dotProductKernels(bytes);
  }
#endif
  return bytes ? ORIEL_CPU_PICK(target, kByteMatmulKernels)
               : ORIEL_CPU_PICK(target, kMatmulKernels);
}

bool readsFloats(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBf16;
}

}  // namespace oriel_internal
#endif
