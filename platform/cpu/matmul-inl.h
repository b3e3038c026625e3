// Products of rows of weights with activations, lanes = rows. Compiled once per target.
#if defined(ORIEL_CPU_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_MATMUL_INL_H_
#undef ORIEL_CPU_MATMUL_INL_H_
#else
#define ORIEL_CPU_MATMUL_INL_H_
#endif

#include "cpu/formats-inl.h"
#include "cpu/integers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel {
namespace HWY_NAMESPACE {

// Formats without a minimum but with a zero point get zero * scale for one.
template <class Format>
constexpr bool subtracts() {
  return Format::kMinimum || Format::kZero != 0;
}

/// Half h of a unit, or all of it: what to subtract per unit of the activations' sum.
template <class Format>
HWY_INLINE VF subtrahend(const ByteUnit& unit, uint32_t half) {
  return Format::kMinimum ? unit.minimum[half]
                          : hn::Mul(unit.scale[half], hn::Set(kF, static_cast<float>(Format::kZero)));
}

/// Asks for the words that will be read after kAheadBytes more: processors look ahead, but not across pages,
/// and not along a group's quads and sides at once. Past the end of either lies what is read next.
HWY_INLINE void prefetch(const uint32_t* words, uint32_t count) {
  constexpr uint32_t kAheadBytes = 4096;
  for (uint32_t w = 0; w < count; w += 16) {
    hwy::Prefetch(words + kAheadBytes / 4 + w);
  }
}

/// kN rows times one token, in the order of operations that dotTile has.
template <class Format>
HWY_INLINE VF dotOne(const RowsView& rows, uint32_t units, uint32_t words_per_unit,
                     uint32_t side_words, const void* in) {
  const IntUnit* x = static_cast<const IntUnit*>(in);
  const IntUnitSums* x_sums = reinterpret_cast<const IntUnitSums*>(x + units);
  VF total = hn::Zero(kF);
  for (uint32_t u = 0; u < units; ++u) {
    prefetch(rows.quads + u * words_per_unit, words_per_unit);
    prefetch(rows.sides + u * side_words, side_words);
    ByteUnit unit;
    Format::load(rows, u, &unit);
    Sums sums;
    sums.clear();
    for (uint32_t j = 0; j < 4; ++j) {
      const VU low = unit.bytes[j];
      const VU high = unit.bytes[4 + j];
      sums.addLow(evenBytes<Format::kSigned>(low), pairOf(x[u], 2 * j));
      sums.addHigh(evenBytes<Format::kSigned>(high), pairOf(x[u], 8 + 2 * j));
      sums.addLow(oddBytes<Format::kSigned>(low), pairOf(x[u], 2 * j + 1));
      sums.addHigh(oddBytes<Format::kSigned>(high), pairOf(x[u], 8 + 2 * j + 1));
    }
    const VF x_scale = hn::Set(kF, x_sums[u].scale);
    for (uint32_t half = 0; half < (Format::kHalves ? 2 : 1); ++half) {
      const VF dot = !Format::kHalves ? sums.both() : half == 0 ? sums.low() : sums.high();
      total = hn::MulAdd(hn::Mul(dot, x_scale), unit.scale[half], total);
      if (subtracts<Format>()) {
        const float sum = !Format::kHalves ? x_sums[u].scaled
                          : half == 0      ? x_sums[u].scaled_low
                                           : x_sums[u].scaled_high;
        total = hn::NegMulAdd(subtrahend<Format>(unit, half), hn::Set(kF, sum), total);
      }
    }
  }
  return total;
}

/// A unit of kN rows, widened, in memory: unpacked once for all tokens of a chunk.
struct WideUnit {
  HWY_ALIGN int16_t values[16][2 * kN];
  HWY_ALIGN float scale[2][kN];
  HWY_ALIGN float subtract[2][kN];
};
constexpr uint32_t kWideUnits = 8;  // of 16 rows: 9 KiB

template <class Format>
HWY_INLINE void widen(const RowsView& rows, uint32_t first, uint32_t count, WideUnit* out) {
  for (uint32_t u = 0; u < count; ++u) {
    ByteUnit unit;
    Format::load(rows, first + u, &unit);
    for (uint32_t j = 0; j < 8; ++j) {
      hn::Store(evenBytes<Format::kSigned>(unit.bytes[j]), kI16, out[u].values[2 * j]);
      hn::Store(oddBytes<Format::kSigned>(unit.bytes[j]), kI16, out[u].values[2 * j + 1]);
    }
    for (uint32_t half = 0; half < (Format::kHalves ? 2 : 1); ++half) {
      hn::Store(unit.scale[half], kF, out[u].scale[half]);
      if (subtracts<Format>()) {
        hn::Store(subtrahend<Format>(unit, half), kF, out[u].subtract[half]);
      }
    }
  }
}

HWY_INLINE VI16 pairOf(const IntTile& tile, uint32_t pair, uint32_t token) {
  int32_t both;
  hwy::CopyBytes<4>(tile.values[pair][token], &both);
  return hn::BitCast(kI16, hn::Set(kI, both));
}

/// Vectors of rows that dotTile works on at once: of two, each pair of activations is loaded for twice the
/// products. Processors with half of AVX-512's registers have no room for their sums.
constexpr uint32_t kTileVectors = kN == 16 ? 2 : 1;

/// totals[v][t][kN] += `count` units of vector v of kN rows times the tokens of a tile; vectors lie
/// `wide_stride` units and `totals_stride` floats apart.
template <bool kHalves, bool kSubtract, uint32_t kVectors>
HWY_NOINLINE void dotTile(const WideUnit* wide, uint32_t wide_stride, uint32_t count,
                          const IntTile* x, float* totals, uint32_t totals_stride) {
  for (uint32_t u = 0; u < count; ++u) {
    const IntTile& tile = x[u];
    for (uint32_t half = 0; half < (kHalves ? 2 : 1); ++half) {
      VI sum0[kVectors][kTileTokens];
      VI sum1[kVectors][kTileTokens];
      for (uint32_t t = 0; t < kVectors * kTileTokens; ++t) {
        sum0[t / kTileTokens][t % kTileTokens] = hn::Zero(kI);
        sum1[t / kTileTokens][t % kTileTokens] = hn::Zero(kI);
      }
      constexpr uint32_t kPairs = kHalves ? 8 : 16;
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC unroll 16  // or it copies every sum to another register and back for each pair
#endif
      for (uint32_t j = 0; j < kPairs; ++j) {
        const uint32_t i = kPairs * half + j;
        VI16 w[kVectors];
        for (uint32_t v = 0; v < kVectors; ++v) {
          w[v] = hn::Load(kI16, wide[v * wide_stride + u].values[i]);
        }
        for (uint32_t t = 0; t < kTileTokens; ++t) {
          const VI16 pair = pairOf(tile, i, t);
          for (uint32_t v = 0; v < kVectors; ++v) {
            sum0[v][t] = addProducts(w[v], pair, sum0[v][t], sum1[v][t]);
          }
        }
      }
      for (uint32_t v = 0; v < kVectors; ++v) {
        const WideUnit& unit = wide[v * wide_stride + u];
        const VF scale = hn::Load(kF, unit.scale[half]);
        for (uint32_t t = 0; t < kTileTokens; ++t) {
          float* const at = totals + v * totals_stride + t * kN;
          const VF dot = hn::ConvertTo(kF, hn::RearrangeToOddPlusEven(sum0[v][t], sum1[v][t]));
          VF total =
              hn::MulAdd(hn::Mul(dot, hn::Set(kF, tile.scale[t])), scale, hn::Load(kF, at));
          if (kSubtract) {
            const float sum = kHalves ? tile.scaled_half[half][t] : tile.scaled[t];
            total = hn::NegMulAdd(hn::Load(kF, unit.subtract[half]), hn::Set(kF, sum), total);
          }
          hn::Store(total, kF, at);
        }
      }
    }
  }
}

// ---- Float weights ---------------------------------------------------------------------------------

template <class Format>
HWY_INLINE VF dotOneFloat(const RowsView& rows, uint32_t units, uint32_t words_per_unit,
                          const float* in) {
  VF total[4] = {hn::Zero(kF), hn::Zero(kF), hn::Zero(kF), hn::Zero(kF)};
  for (uint32_t u = 0; u < units; ++u) {
    prefetch(rows.quads + u * words_per_unit, words_per_unit);
    VF values[kUnit];
    Format::load(rows, u, values);
    for (uint32_t i = 0; i < kUnit; ++i) {
      total[i % 4] = hn::MulAdd(values[i], hn::Set(kF, in[u * kUnit + i]), total[i % 4]);
    }
  }
  return hn::Add(hn::Add(total[0], total[1]), hn::Add(total[2], total[3]));
}

struct FloatUnit {
  HWY_ALIGN float values[kUnit][kN];
};

template <uint32_t kTokens>
HWY_NOINLINE void dotFloats(const FloatUnit* wide, uint32_t count, const float* x, uint32_t stride,
                            float* totals) {
  VF total[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    total[t] = hn::Load(kF, totals + t * kN);
  }
  // Unit by unit: a sum of so few terms is rounded less often than one of a whole row.
  for (uint32_t u = 0; u < count; ++u) {
    VF sum[kTokens];
    for (uint32_t t = 0; t < kTokens; ++t) {
      sum[t] = hn::Zero(kF);
    }
    for (uint32_t i = 0; i < kUnit; ++i) {
      const VF w = hn::Load(kF, wide[u].values[i]);
      for (uint32_t t = 0; t < kTokens; ++t) {
        sum[t] = hn::MulAdd(w, hn::Set(kF, x[uint64_t{t} * stride + u * kUnit + i]), sum[t]);
      }
    }
    for (uint32_t t = 0; t < kTokens; ++t) {
      total[t] = hn::Add(total[t], sum[t]);
    }
  }
  for (uint32_t t = 0; t < kTokens; ++t) {
    hn::Store(total[t], kF, totals + t * kN);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#endif  // per target
