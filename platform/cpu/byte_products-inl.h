// Products of weights with several tokens whose activations are rounded to 8 bits: bytes times bytes, four at once.
// Compiled once per target that has the instruction.
#if defined(ORIEL_CPU_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_BYTE_PRODUCTS_INL_H_
#undef ORIEL_CPU_BYTE_PRODUCTS_INL_H_
#else
#define ORIEL_CPU_BYTE_PRODUCTS_INL_H_
#endif

#include "cpu/matmul-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

/// A unit of kN rows as signed bytes, without their zero point. The instruction needs unsigned activations, so
/// 128 is added to them. `start` is the negative effect of that on a product.
struct WideBytes {
  HWY_ALIGN uint32_t words[8][kN];
  HWY_ALIGN int32_t start[2][kN];
  HWY_ALIGN float scale[2][kN];
  HWY_ALIGN float minimum[2][kN];
};

template <class Format>
HWY_INLINE void widenBytes(const RowsView& rows, uint32_t first, uint32_t count, WideBytes* out) {
  constexpr hn::Repartition<int8_t, DF> k8;
  const VU added = hn::Set(kU, 0x80808080u);
  for (uint32_t u = 0; u < count; ++u) {
    ByteUnit unit;
    Format::load(rows, first + u, &unit);
    VI sum[2] = {hn::Zero(kI), hn::Zero(kI)};
    for (uint32_t j = 0; j < 8; ++j) {
      VU bytes = unit.bytes[j];
      if constexpr (Format::kZero != 0) {
        bytes = hn::BitCast(
            kU, hn::Sub(hn::BitCast(k8, bytes), hn::Set(k8, static_cast<int8_t>(Format::kZero))));
      }
      hn::Store(bytes, kU, out[u].words[j]);
      VI& of = sum[Format::kHalves ? j / 4 : 0];
      of = addByteProducts(added, hn::BitCast(kI, bytes), of);
    }
    for (uint32_t part = 0; part < (Format::kHalves ? 2 : 1); ++part) {
      hn::Store(hn::Neg(sum[part]), kI, out[u].start[part]);
    }
    storeSides<Format>(unit, &out[u]);
  }
}

HWY_INLINE VU fourOf(const ByteTile& tile, uint32_t word, uint32_t token) {
  uint32_t four;
  hwy::CopyBytes<4>(tile.values[word][token], &four);
  return hn::Set(kU, four);
}

/// Like dotTile.
template <bool kHalves, bool kMinimum, uint32_t kVectors, uint32_t kTokens>
static HWY_NOINLINE void dotBytes(const WideBytes* wide, uint32_t wide_stride, uint32_t count,
                                  const ByteTile* x, float* totals, uint32_t totals_stride) {
  for (uint32_t u = 0; u < count; ++u) {
    const ByteTile& tile = x[u];
    for (uint32_t half = 0; half < (kHalves ? 2 : 1); ++half) {
      VI sum[kVectors][kTokens];
      for (uint32_t i = 0; i < kVectors * kTokens; ++i) {
        sum[i / kTokens][i % kTokens] =
            hn::Load(kI, wide[i / kTokens * wide_stride + u].start[half]);
      }
      constexpr uint32_t kWords = kHalves ? 4 : 8;
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC unroll 1
#endif
      for (uint32_t j = kWords * half; j < kWords * (half + 1); ++j) {
        VI w[kVectors];
        for (uint32_t v = 0; v < kVectors; ++v) {
          w[v] = hn::BitCast(kI, hn::Load(kU, wide[v * wide_stride + u].words[j]));
        }
        for (uint32_t t = 0; t < kTokens; ++t) {
          const VU four = fourOf(tile, j, t);
          for (uint32_t v = 0; v < kVectors; ++v) {
            sum[v][t] = addByteProducts(four, w[v], sum[v][t]);
          }
        }
      }
      const uint32_t part = kHalves ? half : kWhole;
      for (uint32_t v = 0; v < kVectors; ++v) {
        const WideBytes& unit = wide[v * wide_stride + u];
        const VF scale = hn::Load(kF, unit.scale[half]);
        for (uint32_t t = 0; t < kTokens; ++t) {
          float* const at = totals + v * totals_stride + t * kN;
          const VF dot = hn::ConvertTo(kF, sum[v][t]);
          VF total =
              hn::MulAdd(hn::Mul(dot, hn::Set(kF, tile.sums.scale[t])), scale, hn::Load(kF, at));
          if (kMinimum) {
            total = hn::NegMulAdd(hn::Load(kF, unit.minimum[half]),
                                  hn::Set(kF, tile.sums.scaled[part][t]), total);
          }
          hn::Store(total, kF, at);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();
#endif

#endif  // per target
