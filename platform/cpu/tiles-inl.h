// Several tokens at once, for targets that multiply bytes: their activations in the layout of the chunk kernels, and
// products with them. Compiled once per target.
#if defined(ORIEL_CPU_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_TILES_INL_H_
#undef ORIEL_CPU_TILES_INL_H_
#else
#define ORIEL_CPU_TILES_INL_H_
#endif

#include "cpu/integers-inl.h"
#include "cpu/matmul-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

/// Quantises the tokens of a tile side by side. One at a time, most time would go into lane sums and single words.
/// The results are bitwise equal to quantiseUnit of each token.
template <int32_t kMost>
class TileMaker {
 public:
  /// An IntTile, or a ByteTile if codes are bytes.
  static HWY_INLINE void make(const float* const* rows, uint32_t count, uint32_t unit, void* out) {
    TileSums* const to =
        kBytes ? &static_cast<ByteTile*>(out)->sums : &static_cast<IntTile*>(out)->sums;
    VF x[kTileTokens][2];
    VF most[kTileTokens];
    for (uint32_t t = 0; t < kTileTokens; ++t) {
      for (uint32_t i = 0; i < 2; ++i) {
        x[t][i] = t < count ? hn::LoadU(kF, rows[t] + unit * kUnit + i * kN) : hn::Zero(kF);
      }
      most[t] = hn::Max(hn::Max(hn::Zero(kF), hn::Abs(x[t][0])), hn::Abs(x[t][1]));
    }
    const VH scale = hn::Mul(mostOfEach(most), hn::Set(kH, 1.0f / static_cast<float>(kMost)));
    hn::StoreU(scale, kH, to->scale);
    HWY_ALIGN float inverse[kTileTokens];
    hn::Store(
        hn::IfThenElseZero(hn::Gt(scale, hn::Set(kH, 1e-37f)), hn::Div(hn::Set(kH, 1.0f), scale)),
        kH, inverse);
    VI16 codes[kTileTokens];
    for (uint32_t t = 0; t < kTileTokens; ++t) {
      codes[t] = codesOf(x[t], hn::Set(kF, inverse[t]));
    }
    VHI sums[3];
    if constexpr (kBytes) {
      storeBytes(codes, static_cast<ByteTile*>(out), sums);
    } else {
      storePairs(codes, static_cast<IntTile*>(out), sums);
    }
    sums[kWhole] = hn::Add(sums[0], sums[1]);
    for (uint32_t part = 0; part < 3; ++part) {
      hn::StoreU(hn::Mul(scale, hn::ConvertTo(kH, sums[part])), kH, to->scaled[part]);
    }
  }

 private:
  static constexpr bool kBytes = kMost == kMostOfBytes;
  using DH = hn::Half<DF>;
  using DHI = hn::Half<DI>;
  using VH = hn::Vec<DH>;
  using VHI = hn::Vec<DHI>;
  static constexpr DH kH{};
  static constexpr DHI kHI{};
  static constexpr hn::Repartition<uint64_t, DF> k64{};

  static HWY_INLINE VF mostOf64(VF a, VF b) {
    const auto a64 = hn::BitCast(k64, a);
    const auto b64 = hn::BitCast(k64, b);
    return hn::Max(hn::BitCast(kF, hn::InterleaveLower(k64, a64, b64)),
                   hn::BitCast(kF, hn::InterleaveUpper(k64, a64, b64)));
  }

  static HWY_INLINE VH mostOfEach(const VF (&most)[kTileTokens]) {
    VF pair[4];
    for (uint32_t i = 0; i < 4; ++i) {
      pair[i] = hn::Max(hn::InterleaveLower(kF, most[2 * i], most[2 * i + 1]),
                        hn::InterleaveUpper(kF, most[2 * i], most[2 * i + 1]));
    }
    const VF low = mostOf64(pair[0], pair[1]);   // of tokens 0 .. 3, in each 128 bits
    const VF high = mostOf64(pair[2], pair[3]);  // of tokens 4 .. 7
    const VF both =
        hn::Max(hn::ConcatLowerLower(kF, high, low), hn::ConcatUpperUpper(kF, high, low));
    const VH low2 = hn::LowerHalf(kH, both);
    const VH high2 = hn::UpperHalf(kH, both);
    return hn::Max(hn::ConcatLowerLower(kH, high2, low2), hn::ConcatUpperUpper(kH, high2, low2));
  }

  /// A unit of one token: in 128 bits k values 4k .. 4k + 3 and 16 + 4k .. 16 + 4k + 3.
  static HWY_INLINE VI16 codesOf(const VF (&x)[2], VF inverse) {
    const VI16 codes = VI16{_mm512_packs_epi32(hn::NearestInt(hn::Mul(x[0], inverse)).raw,
                                               hn::NearestInt(hn::Mul(x[1], inverse)).raw)};
    const VI16 limit = hn::Set(kI16, static_cast<int16_t>(kMost));
    return hn::Max(hn::Min(codes, limit), hn::Neg(limit));
  }

  static HWY_INLINE void storePairs(const VI16 (&codes)[kTileTokens], IntTile* tile,
                                    VHI (&sums)[3]) {
    HWY_ALIGN static constexpr uint8_t kOrder[16] = {0, 1, 4,  5,  2,  3,  6,  7,
                                                     8, 9, 12, 13, 10, 11, 14, 15};
    const DU8 k8;
    const auto order = hn::LoadDup128(k8, kOrder);
    VU pairs[kTileTokens];
    for (uint32_t t = 0; t < kTileTokens; ++t) {
      pairs[t] = hn::BitCast(kU, hn::TableLookupBytes(hn::BitCast(k8, codes[t]), order));
    }
    sums[0] = storeHalf(pairs, 0, tile);
    sums[1] = storeHalf(pairs, 1, tile);
  }

  static HWY_INLINE void storeBytes(const VI16 (&codes)[kTileTokens], ByteTile* tile,
                                    VHI (&sums)[3]) {
    // Two tokens to a vector, 4 apart; words of 4 values of each come in the order 0, 4, 1, 5, 2, 6, 3, 7.
    VU both[4];
    for (uint32_t t = 0; t < 4; ++t) {
      both[t] = VU{_mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(codes[t].raw)),
                                      _mm512_cvtepi16_epi8(codes[4 + t].raw), 1)};
    }
    const auto low0 = hn::BitCast(k64, hn::InterleaveLower(kU, both[0], both[1]));
    const auto low1 = hn::BitCast(k64, hn::InterleaveLower(kU, both[2], both[3]));
    const auto high0 = hn::BitCast(k64, hn::InterleaveUpper(kU, both[0], both[1]));
    const auto high1 = hn::BitCast(k64, hn::InterleaveUpper(kU, both[2], both[3]));
    const VU word0 = hn::BitCast(kU, hn::InterleaveLower(k64, low0, low1));    // and 2
    const VU word4 = hn::BitCast(kU, hn::InterleaveUpper(k64, low0, low1));    // and 6
    const VU word1 = hn::BitCast(kU, hn::InterleaveLower(k64, high0, high1));  // and 3
    const VU word5 = hn::BitCast(kU, hn::InterleaveUpper(k64, high0, high1));  // and 7
    const VU rows[4] = {blocks<0x88>(word0, word1), blocks<0xdd>(word0, word1),
                        blocks<0x88>(word4, word5), blocks<0xdd>(word4, word5)};
    for (uint32_t half = 0; half < 2; ++half) {
      VI sum = hn::Zero(kI);
      for (uint32_t i = 2 * half; i < 2 * half + 2; ++i) {
        hn::StoreU(hn::Xor(rows[i], hn::Set(kU, 0x80808080u)), kU,
                   reinterpret_cast<uint32_t*>(tile->values[2 * i]));
        sum = addByteProducts(hn::Set(kU, 0x01010101u), hn::BitCast(kI, rows[i]), sum);
      }
      sums[half] = hn::Add(hn::LowerHalf(kHI, sum), hn::UpperHalf(kHI, sum));
    }
  }

  /// Stores the pairs of values 0 .. 15 or 16 .. 31. Returns each token's sum of values.
  static HWY_INLINE VHI storeHalf(const VU (&pairs)[kTileTokens], uint32_t half, IntTile* tile) {
    // In 128 bits k: pair 2k, or in column[1] 2k + 1, of tokens 4h .. 4h + 3.
    VU column[2][2];
    for (uint32_t h = 0; h < 2; ++h) {
      const VU* const p = pairs + 4 * h;
      const auto a = hn::BitCast(k64, interleave(half, p[0], p[1]));
      const auto b = hn::BitCast(k64, interleave(half, p[2], p[3]));
      column[0][h] = hn::BitCast(kU, hn::InterleaveLower(k64, a, b));
      column[1][h] = hn::BitCast(kU, hn::InterleaveUpper(k64, a, b));
    }
    // For k = 0 and 1, or 2 and 3.
    const VU even[2] = {blocks<0x44>(column[0][0], column[0][1]),
                        blocks<0xee>(column[0][0], column[0][1])};
    const VU odd[2] = {blocks<0x44>(column[1][0], column[1][1]),
                       blocks<0xee>(column[1][0], column[1][1])};
    const VU rows[4] = {blocks<0x88>(even[0], odd[0]), blocks<0xdd>(even[0], odd[0]),
                        blocks<0x88>(even[1], odd[1]), blocks<0xdd>(even[1], odd[1])};
    VI sum = hn::Zero(kI);
    for (uint32_t i = 0; i < 4; ++i) {
      hn::StoreU(hn::BitCast(kI16, rows[i]), kI16, tile->values[8 * half + 2 * i][0]);
      sum = addProducts(hn::BitCast(kI16, rows[i]), hn::Set(kI16, 1), sum, sum);
    }
    return hn::Add(hn::LowerHalf(kHI, sum), hn::UpperHalf(kHI, sum));
  }
  template <int kOf>
  static HWY_INLINE VU blocks(VU a, VU b) {
    return VU{_mm512_shuffle_i64x2(a.raw, b.raw, kOf)};
  }
  static HWY_INLINE VU interleave(uint32_t upper, VU a, VU b) {
    return upper != 0 ? hn::InterleaveUpper(kU, a, b) : hn::InterleaveLower(kU, a, b);
  }
};

// Products of weights with several tokens whose activations are rounded to 8 bits: bytes times bytes, four at once.

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
