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
struct IntKernel {
  using Wide = WideUnit;
  static constexpr uint32_t kVectors = kTileVectors;
  static HWY_INLINE VF one(const MatmulTask& task, const RowsView& rows) {
    return dotOne<Format>(rows, task.units, task.side_word / task.units,
                          (task.group_words - task.side_word) / task.units, task.in);
  }
  static HWY_INLINE void unpack(const RowsView& rows, uint32_t first, uint32_t count, Wide* wide) {
    widen<Format>(rows, first, count, wide);
  }
  // kN rows, or kVectors times as many, times up to kTileTokens tokens from a multiple of it.
  template <uint32_t kMany>
  static HWY_INLINE void tile(const MatmulTask& task, const Wide* wide, uint32_t first,
                              uint32_t count, uint32_t token, uint32_t, float* totals) {
    const IntTile* tiles = static_cast<const IntTile*>(task.in) +
                           static_cast<uint64_t>(token / kTileTokens) * task.units + first;
    dotTile<Format::kHalves, Format::kMinimum, Format::kZero, kMany>(wide, kWideUnits, count, tiles,
                                                                     totals, kMostTokens * kN);
  }
};

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

// kMany times kN rows that begin at `row`.
template <class Kernel, uint32_t kMany>
HWY_NOINLINE void runMany(const MatmulTask& task, uint32_t row, uint32_t first_token, uint32_t n) {
  typename Kernel::Wide wide[kMany][kWideUnits];
  HWY_ALIGN float totals[kMany][kMostTokens * kN];
  hwy::ZeroBytes<sizeof(totals)>(totals);
  for (uint32_t unit = 0; unit < task.units; unit += kWideUnits) {
    const uint32_t count = HWY_MIN(kWideUnits, task.units - unit);
    for (uint32_t v = 0; v < kMany; ++v) {
      Kernel::unpack(rowsFrom(task, row + v * kN), unit, count, wide[v]);
    }
    for (uint32_t t = 0; t < n; t += kTileTokens) {
      Kernel::template tile<kMany>(task, wide[0], unit, count, first_token + t,
                                   HWY_MIN(kTileTokens, n - t), totals[0] + t * kN);
    }
  }
  for (uint32_t v = 0; v < kMany; ++v) {
    for (uint32_t t = 0; t < n; ++t) {
      store(task, row + v * kN, first_token + t, hn::Load(kF, totals[v] + t * kN));
    }
  }
}

template <class Kernel>
void run(const MatmulTask& task, uint32_t first_group, uint32_t count) {
  const uint32_t end = HWY_MIN((first_group + count) * kGroupRows, task.rows);
  uint32_t row = first_group * kGroupRows;
  if (task.n_tokens == 1) {
    for (; row < end; row += kN) {
      store(task, row, 0, Kernel::one(task, rowsFrom(task, row)));
    }
    return;
  }
  while (row < end) {
    const bool many = row + (Kernel::kVectors - 1) * kN < end;
    for (uint32_t t = 0; t < task.n_tokens; t += kMostTokens) {
      const uint32_t n = HWY_MIN(kMostTokens, task.n_tokens - t);
      if (many) {
        runMany<Kernel, Kernel::kVectors>(task, row, t, n);
      } else {
        runMany<Kernel, 1>(task, row, t, n);
      }
    }
    row += many ? Kernel::kVectors * kN : kN;
  }
}

void quantiseRow(const float* in, uint32_t units, void* row) {
  OneUnit* out = static_cast<OneUnit*>(row);
  IntUnitSums* sums = reinterpret_cast<IntUnitSums*>(out + units);
  for (uint32_t u = 0; u < units; ++u) {
    Codes codes;
    quantiseUnit(in + u * kUnit, kMostCode, &codes);
    storeOne(codes, out + u);
    sums[u] = codes.sums;
  }
}

void quantiseTiles(const float* in, uint32_t in_stride, uint32_t count, uint32_t units,
                   IntTile* tiles) {
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
      tile.scale[t] = codes.sums.scale;
      for (uint32_t part = 0; part < 3; ++part) {
        tile.scaled[part][t] = codes.sums.scaled[part];
        tile.minus_sum[part][t] = codes.sums.minus_sum[part];
      }
    }
  }
}

// In the order of WeightType.
const MatmulKernels kMatmulKernels = {
    {&run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>, &run<IntKernel<Q8_0>>,
     &run<IntKernel<Q4_0>>, &run<IntKernel<Q4_1>>, &run<IntKernel<Q5_0>>, &run<IntKernel<Q5_1>>,
     &run<IntKernel<Iq4Nl>>, &run<IntKernel<Q2_K>>, &run<IntKernel<Q3_K>>, &run<IntKernel<Q4_K>>,
     &run<IntKernel<Q5_K>>, &run<IntKernel<Q6_K>>, &run<IntKernel<Iq4Xs>>},
    &quantiseRow,
    &quantiseTiles};
static_assert(kWeightTypes == 15, "a kernel for each");

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel {

const MatmulKernels& matmulKernels(SimdTarget target) {
  return ORIEL_CPU_PICK(target, kMatmulKernels);
}

bool readsFloats(WeightType type) {
  return type == WeightType::kF32 || type == WeightType::kF16 || type == WeightType::kBf16;
}

}  // namespace oriel
#endif
