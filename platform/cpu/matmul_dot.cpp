// Products of bytes on 64-bit Arm with a four-byte dot product instruction (FEAT_DotProd). Only this file is
// compiled for processors with that instruction (runtime/CMakeLists.txt), so the linker must not merge its functions
// with others: every function is inlined, static or in its own namespace.
#ifdef ORIEL_CPU_DOT_PRODUCTS

#include <arm_neon.h>

#include "cpu/kernels.h"
#include "cpu/targets.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "cpu/matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {
namespace dot {

using OneUnit = PlaneUnit;
using Tile = PlaneTile;
constexpr int32_t kMostCode = kMostOfPlanes;
HWY_INLINE void storeOne(const Codes& codes, OneUnit* out) { storePlanes(codes, out); }

template <int kFour>
HWY_INLINE int32x4_t addFour(VU w, int8x16_t x, int32x4_t sum) {
  return vdotq_laneq_s32(sum, vreinterpretq_s8_u32(w.raw), x, kFour);
}
/// sum += half a unit of four rows times 16 bytes.
HWY_INLINE int32x4_t addHalf(const VU* words, int8x16_t x, int32x4_t sum) {
  sum = addFour<0>(words[0], x, sum);
  sum = addFour<1>(words[1], x, sum);
  sum = addFour<2>(words[2], x, sum);
  return addFour<3>(words[3], x, sum);
}

/// Unsigned bytes below 64 may be read as signed.
template <class Format>
HWY_INLINE void unitProducts(const ByteUnit& unit, const OneUnit& x, const IntUnitSums& sums,
                             VI (&dot)[2]) {
  constexpr uint32_t kParts = Format::kHalves ? 2 : 1;
  for (uint32_t part = 0; part < kParts; ++part) {
    int32x4_t high = vdupq_n_s32(0);
    int32x4_t low = vdupq_n_s32(0);
    if constexpr (Format::kZero != 0) {
      low = zeroPart<Format::kZero>(sums.minus_sum[Format::kHalves ? part : kWhole]).raw;
    }
    for (uint32_t half = part; half < 2; half += kParts) {
      high = addHalf(unit.bytes + 4 * half, vld1q_s8(x.high + 16 * half), high);
      low = addHalf(unit.bytes + 4 * half, vld1q_s8(x.low + 16 * half), low);
    }
    dot[part] = VI(vaddq_s32(vshlq_n_s32(high, 8), low));
  }
}

/// Without their zero point, which is less than 64.
struct WideUnit {
  HWY_ALIGN uint32_t words[8][kN];
  HWY_ALIGN float scale[2][kN];
  HWY_ALIGN float minimum[2][kN];
};

constexpr hn::Repartition<int8_t, DF> kI8{};

template <class Format>
HWY_INLINE void widen(const RowsView& rows, uint32_t first, uint32_t count, WideUnit* out) {
  for (uint32_t u = 0; u < count; ++u) {
    ByteUnit unit;
    Format::load(rows, first + u, &unit);
    for (uint32_t j = 0; j < 8; ++j) {
      VU bytes = unit.bytes[j];
      if constexpr (Format::kZero != 0) {
        bytes = hn::BitCast(kU, hn::Sub(hn::BitCast(kI8, bytes), hn::Set(kI8, Format::kZero)));
      }
      hn::Store(bytes, kU, out[u].words[j]);
    }
    storeSides<Format>(unit, &out[u]);
  }
}

constexpr uint32_t kTileVectors = 1;

/// Like the other dotTile.
template <bool kHalves, bool kMinimum, uint32_t kVectors, uint32_t kTokens>
HWY_NOINLINE void dotTile(const WideUnit* wide, uint32_t, uint32_t count, const Tile* x,
                          float* totals, uint32_t) {
  static_assert(kVectors == kTileVectors, "no more registers");
  constexpr uint32_t kParts = kHalves ? 2 : 1;
  for (uint32_t u = 0; u < count; ++u) {
    const TileSums& sums = x[u].sums;
    for (uint32_t part = 0; part < kParts; ++part) {
      int32x4_t high[kTokens];
      int32x4_t low[kTokens];
      for (uint32_t t = 0; t < kTokens; ++t) {
        high[t] = low[t] = vdupq_n_s32(0);
      }
      for (uint32_t half = part; half < 2; half += kParts) {
        VU words[4];
        for (uint32_t j = 0; j < 4; ++j) {
          words[j] = hn::Load(kU, wide[u].words[4 * half + j]);
        }
        for (uint32_t t = 0; t < kTokens; ++t) {
          const PlaneUnit& token = x[u].tokens[t];
          high[t] = addHalf(words, vld1q_s8(token.high + 16 * half), high[t]);
          low[t] = addHalf(words, vld1q_s8(token.low + 16 * half), low[t]);
        }
      }
      const uint32_t of = kHalves ? part : kWhole;
      const VF scale = hn::Load(kF, wide[u].scale[part]);
      for (uint32_t t = 0; t < kTokens; ++t) {
        float* const at = totals + t * kN;
        const VI dot(vaddq_s32(vshlq_n_s32(high[t], 8), low[t]));
        VF total = hn::MulAdd(hn::Mul(hn::ConvertTo(kF, dot), hn::Set(kF, sums.scale[t])), scale,
                              hn::Load(kF, at));
        if (kMinimum) {
          total = hn::NegMulAdd(hn::Load(kF, wide[u].minimum[part]),
                                hn::Set(kF, sums.scaled[of][t]), total);
        }
        hn::Store(total, kF, at);
      }
    }
  }
}

template <int32_t kMost>
void quantiseTiles(const float* const* rows, uint32_t count, uint32_t units, void* out) {
  Tile* tiles = static_cast<Tile*>(out);
  for (uint32_t u = 0; u < units; ++u) {
    if (count < kTileTokens) {
      tiles[u] = Tile();
    }
    for (uint32_t t = 0; t < count; ++t) {
      Codes codes;
      quantiseUnit(rows[t] + u * kUnit, kMost, &codes);
      storePlanes(codes, &tiles[u].tokens[t]);
      storeSums(codes.sums, t, &tiles[u].sums);
    }
  }
}

#include "cpu/matmul_run-inl.h"

const MatmulKernels kMatmulKernels = dot::kernelsWith<kMostCode>(
    &run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>);
const MatmulKernels kByteMatmulKernels = dot::kernelsWith<kMostOfBytes>(
    &run<FloatKernel<F32>>, &run<FloatKernel<F16>>, &run<FloatKernel<Bf16>>);

}  // namespace dot
}  // namespace HWY_NAMESPACE

const MatmulKernels& dotProductKernels(bool bytes) {
  return bytes ? HWY_NAMESPACE::dot::kByteMatmulKernels : HWY_NAMESPACE::dot::kMatmulKernels;
}

}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // ORIEL_CPU_DOT_PRODUCTS
