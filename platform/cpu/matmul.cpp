#include "cpu/matmul.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matmul.cpp"
#include "cpu/targets.h"

#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel {
namespace HWY_NAMESPACE {

constexpr uint32_t kMostTokens = 64;  // whose totals are kept at a time

// kN rows from a multiple of kN.
RowsView rowsFrom(const MatmulTask& task, uint32_t row) {
  const uint32_t* words = task.weights + static_cast<uint64_t>(row / kGroupRows) * task.group_words;
  return {words + 4 * (row % kGroupRows), words + task.side_word + row % kGroupRows};
}

// Writes kN rows of one token that begin at `row`, as many of them as there are.
HWY_INLINE void store(const MatmulTask& task, uint32_t row, uint32_t token, VF by_lane) {
  const VF values = RowsView::toRows(by_lane);
  float* out = task.out + static_cast<uint64_t>(token) * task.out_stride + row;
  if (row + kN <= task.rows) {
    hn::StoreU(task.accumulate ? hn::Add(hn::LoadU(kF, out), values) : values, kF, out);
    return;
  }
  HWY_ALIGN float some[kN];
  hn::Store(values, kF, some);
  for (uint32_t i = 0; row + i < task.rows; ++i) {
    out[i] = task.accumulate ? out[i] + some[i] : some[i];
  }
}

template <class Format>
struct FloatKernel {
  using Wide = FloatUnit;
  static constexpr uint32_t kVectors = 1;
  static HWY_INLINE VF one(const MatmulTask& task, const RowsView& rows) {
    return dotOneFloat<Format>(rows, task.units, task.side_word / task.units,
                               static_cast<const float*>(task.in));
  }
  static HWY_INLINE void unpack(const RowsView& rows, uint32_t first, uint32_t count, Wide* wide) {
    for (uint32_t u = 0; u < count; ++u) {
      VF values[kUnit];
      Format::load(rows, first + u, values);
      for (uint32_t i = 0; i < kUnit; ++i) {
        hn::Store(values[i], kF, wide[u].values[i]);
      }
    }
  }
  template <uint32_t>
  static HWY_INLINE void tile(const MatmulTask& task, const Wide* wide, uint32_t first,
                              uint32_t count, uint32_t token, uint32_t n, float* totals) {
    const float* x = static_cast<const float*>(task.in) +
                     static_cast<uint64_t>(token) * task.in_stride + first * kUnit;
    if (n == kTileTokens) {
      return dotFloats<kTileTokens>(wide, count, x, task.in_stride, totals);
    }
    for (uint32_t t = 0; t < n; ++t) {
      dotFloats<1>(wide, count, x + static_cast<uint64_t>(t) * task.in_stride, 0, totals + t * kN);
    }
  }
};

HWY_INLINE void storeSums(const IntUnitSums& of, uint32_t token, TileSums* sums) {
  sums->scale[token] = of.scale;
  for (uint32_t part = 0; part < 3; ++part) {
    sums->scaled[part][token] = of.scaled[part];
    sums->minus_sum[part][token] = of.minus_sum[part];
  }
}

void quantiseTiles(const float* in, uint32_t in_stride, uint32_t count, uint32_t units, void* out) {
  IntTile* tiles = static_cast<IntTile*>(out);
  for (uint32_t u = 0; u < units; ++u) {
    IntTile& tile = tiles[u];
    if (count < kTileTokens) {
      tile = IntTile();
    }
    for (uint32_t t = 0; t < count; ++t) {
      Codes codes;
      quantiseUnit(in + static_cast<uint64_t>(t) * in_stride + u * kUnit, kMostCode, &codes);
      IntUnit unit;
      storePairs(codes, unit.values);
      for (uint32_t i = 0; i < 16; ++i) {
        hwy::CopyBytes<4>(unit.values + 2 * i, tile.values[i][t]);
      }
      storeSums(codes.sums, t, &tile.sums);
    }
  }
}

#include "cpu/matmul_run-inl.h"

const MatmulKernels kMatmulKernels = HWY_NAMESPACE::kernelsWith(
    &run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>);

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
#include "cpu/matmul_dot-inl.h"
#endif

#if HWY_ONCE
namespace oriel {

const MatmulKernels& matmulKernels(SimdTarget target) {
#if ORIEL_CPU_HAS_NEON_DOT
  if (target == SimdTarget::kNeonDot) {
    return HWY_STATIC_DISPATCH(dot::kMatmulKernels);
  }
#endif
  return ORIEL_CPU_PICK(target, kMatmulKernels);
}

bool readsFloats(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBf16;
}

}  // namespace oriel
#endif
