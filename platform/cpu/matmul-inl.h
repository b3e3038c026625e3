// Products of rows of weights with activations, lanes = rows. Compiled once per target.
#if defined(ORIEL_CPU_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_MATMUL_INL_H_
#undef ORIEL_CPU_MATMUL_INL_H_
#else
#define ORIEL_CPU_MATMUL_INL_H_
#endif

#include "cpu/formats-inl.h"
#include "cpu/integers-inl.h"
#include "cpu/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

/// Effect of a zero point on integer products: minus_sum * kZero, which is a power of two.
template <int32_t kZero>
HWY_INLINE VI zeroPart(int32_t minus_sum) {
  static_assert(kZero > 0 && (kZero & (kZero - 1)) == 0, "a power of two");
  constexpr int kShift = kZero == 1    ? 0
                         : kZero == 4  ? 2
                         : kZero == 8  ? 3
                         : kZero == 16 ? 4
                         : kZero == 32 ? 5
                                       : 7;
  static_assert(1 << kShift == kZero, "name its shift");
  return hn::ShiftLeft<kShift>(hn::Set(kI, minus_sum));
}

HWY_INLINE void prefetchSecondLevel(const uint32_t* words) {
#if HWY_COMPILER_MSVC && HWY_ARCH_X86
  _mm_prefetch(reinterpret_cast<const char*>(words), _MM_HINT_T1);
#elif HWY_COMPILER_MSVC
  (void)words;
#else
  __builtin_prefetch(words, 0, 2);
#endif
}
/// Prefetches words 16 KiB ahead into the second-level cache, and words 1 KiB ahead into the first. Hardware
/// prefetchers do not cross pages, and do not follow a group's quads and sides at once. The end of a group is
/// followed by the words read next. This is a loop because unrolled code is slower if memory is the limit.
HWY_INLINE void prefetchWords(const uint32_t* words, uint32_t count, uint32_t step) {
  for (uint32_t w = 0; w < count; w += step) {
    prefetchSecondLevel(words + 16384 / 4 + w);
    hwy::Prefetch(words + 1024 / 4 + w);
  }
}
HWY_INLINE void prefetchQuads(const uint32_t* words, uint32_t count) {
  // Four rows have one line of four.
  prefetchWords(words, count, kN == 4 ? 4 * kGroupRows : 16);
}
/// Part `part` of `parts` of `count` words, into the second-level cache.
HWY_INLINE void askForWords(const uint32_t* words, uint32_t count, uint32_t part, uint32_t parts) {
  const uint32_t lines = (count + 15) / 16;
  for (uint32_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i) {
    prefetchSecondLevel(words + 16 * i);
  }
}
HWY_INLINE void prefetchForWriting(const void* address) {
#if HWY_COMPILER_MSVC
  (void)address;
#else
  __builtin_prefetch(address, 1, 3);
#endif
}
HWY_INLINE void prefetchSides(const uint32_t* words, uint32_t count) {
  prefetchWords(words, count, 16);
}

// Parts that matmul_run-inl.h needs. One token: OneUnit, its rounding, and unitProducts with a unit (dot[0] of the
// whole unit, or both halves). Several tokens: Tile, WideUnit, widen and dotTile.

#if HWY_TARGET == HWY_AVX3
using OneUnit = PlaneUnit;
constexpr int32_t kMostCode = kMostOfPlanes;  // also for chunks, whose products are the same
HWY_INLINE void storeOne(const Codes& codes, OneUnit* out) { storePlanes(codes, out); }

template <class Format>
HWY_INLINE void unitProducts(const ByteUnit& unit, const OneUnit& x, const IntUnitSums& sums,
                             VI (&dot)[2]) {
  constexpr uint32_t kParts = Format::kHalves ? 2 : 1;
  constexpr uint32_t kWords = 8 / kParts;
  // Signed bytes with 128 added are unsigned.
  constexpr int32_t kZero = Format::kSigned ? 128 : Format::kZero;
  for (uint32_t part = 0; part < kParts; ++part) {
    VI high = hn::Zero(kI);
    VI low = hn::Zero(kI);
    if constexpr (kZero != 0) {
      low = zeroPart<kZero>(sums.minus_sum[Format::kHalves ? part : kWhole]);
    }
    for (uint32_t j = part * kWords; j < (part + 1) * kWords; ++j) {
      const VU bytes =
          Format::kSigned ? hn::Xor(unit.bytes[j], hn::Set(kU, 0x80808080u)) : unit.bytes[j];
      high = addByteProducts(bytes, fourOf(x.high, j), high);
      low = addByteProducts(bytes, fourOf(x.low, j), low);
    }
    dot[part] = hn::Add(hn::ShiftLeft<8>(high), low);
  }
}
#else
using OneUnit = IntUnit;
constexpr int32_t kMostCode = kMostOfPairs;
HWY_INLINE void storeOne(const Codes& codes, OneUnit* out) { storePairs(codes, out->values); }

template <class Format>
HWY_INLINE void unitProducts(const ByteUnit& unit, const OneUnit& x, const IntUnitSums& sums,
                             VI (&dot)[2]) {
  Sums by_half;
  by_half.clear();
  for (uint32_t j = 0; j < 4; ++j) {
    const VU low = unit.bytes[j];
    const VU high = unit.bytes[4 + j];
    by_half.addLow(evenBytes<Format::kSigned>(low), pairOf(x, 2 * j));
    by_half.addHigh(evenBytes<Format::kSigned>(high), pairOf(x, 8 + 2 * j));
    by_half.addLow(oddBytes<Format::kSigned>(low), pairOf(x, 2 * j + 1));
    by_half.addHigh(oddBytes<Format::kSigned>(high), pairOf(x, 8 + 2 * j + 1));
  }
  dot[0] = by_half.low();
  dot[1] = by_half.high();
  if (!Format::kHalves) {
    dot[0] = hn::Add(dot[0], dot[1]);
  }
  if constexpr (Format::kZero != 0) {
    for (uint32_t part = 0; part < (Format::kHalves ? 2 : 1); ++part) {
      dot[part] = hn::Add(dot[part],
                          zeroPart<Format::kZero>(sums.minus_sum[Format::kHalves ? part : kWhole]));
    }
  }
}
#endif

using Tile = IntTile;

template <class Format, class Wide>
HWY_INLINE void storeSides(const ByteUnit& unit, Wide* out) {
  for (uint32_t part = 0; part < (Format::kHalves ? 2 : 1); ++part) {
    hn::Store(unit.scale[part], kF, out->scale[part]);
    if (Format::kMinimum) {
      hn::Store(unit.minimum[part], kF, out->minimum[part]);
    }
  }
}

/// A unit of kN rows in memory, widened and without zero point: unpacked once for all tokens of a chunk.
struct WideUnit {
  HWY_ALIGN int16_t values[16][2 * kN];
  HWY_ALIGN float scale[2][kN];
  HWY_ALIGN float minimum[2][kN];
};
constexpr uint32_t kWideUnits = 8;  // of 16 rows: 9 KiB

template <class Format>
HWY_INLINE void widen(const RowsView& rows, uint32_t first, uint32_t count, WideUnit* out) {
  for (uint32_t u = 0; u < count; ++u) {
    ByteUnit unit;
    Format::load(rows, first + u, &unit);
    for (uint32_t j = 0; j < 8; ++j) {
      VI16 even = evenBytes<Format::kSigned>(unit.bytes[j]);
      VI16 odd = oddBytes<Format::kSigned>(unit.bytes[j]);
      if constexpr (Format::kZero != 0) {
        even = hn::Sub(even, hn::Set(kI16, Format::kZero));
        odd = hn::Sub(odd, hn::Set(kI16, Format::kZero));
      }
      hn::Store(even, kI16, out[u].values[2 * j]);
      hn::Store(odd, kI16, out[u].values[2 * j + 1]);
    }
    storeSides<Format>(unit, &out[u]);
  }
}

HWY_INLINE VI16 pairOf(const IntTile& tile, uint32_t pair, uint32_t token) {
  int32_t both;
  hwy::CopyBytes<4>(tile.values[pair][token], &both);
  return hn::BitCast(kI16, hn::Set(kI, both));
}

/// Vectors of rows that dotTile processes at once: with two, each loaded pair of activations serves twice the
/// products. Processors with half of AVX-512's registers lack registers for the sums.
constexpr uint32_t kTileVectors = kN == 16 ? 2 : 1;

/// totals[v][t][kN] += `count` units of vector v of kN rows times the first kTokens of a tile; vectors lie
/// `wide_stride` units and `totals_stride` floats apart.
template <bool kHalves, bool kMinimum, uint32_t kVectors, uint32_t kTokens>
static HWY_NOINLINE void dotTile(const WideUnit* wide, uint32_t wide_stride, uint32_t count,
                                 const IntTile* x, float* totals, uint32_t totals_stride) {
  for (uint32_t u = 0; u < count; ++u) {
    const IntTile& tile = x[u];
    for (uint32_t half = 0; half < (kHalves ? 2 : 1); ++half) {
      VI sum0[kVectors][kTokens];
      VI sum1[kVectors][kTokens];
      for (uint32_t t = 0; t < kVectors * kTokens; ++t) {
        sum0[t / kTokens][t % kTokens] = hn::Zero(kI);
        sum1[t / kTokens][t % kTokens] = hn::Zero(kI);
      }
      const uint32_t part = kHalves ? half : kWhole;
      constexpr uint32_t kPairs = kHalves ? 8 : 16;
#if HWY_COMPILER_GCC_ACTUAL && HWY_TARGET == HWY_AVX3
#pragma GCC unroll 1
#elif HWY_COMPILER_GCC_ACTUAL
#pragma GCC unroll 16  // else GCC copies every sum to another register and back for each pair
#endif
      for (uint32_t j = 0; j < kPairs; ++j) {
        const uint32_t i = kPairs * half + j;
        VI16 w[kVectors];
        for (uint32_t v = 0; v < kVectors; ++v) {
          w[v] = hn::Load(kI16, wide[v * wide_stride + u].values[i]);
        }
        for (uint32_t t = 0; t < kTokens; ++t) {
          const VI16 pair = pairOf(tile, i, t);
          for (uint32_t v = 0; v < kVectors; ++v) {
            sum0[v][t] = addProducts(w[v], pair, sum0[v][t], sum1[v][t]);
          }
        }
      }
      for (uint32_t v = 0; v < kVectors; ++v) {
        const WideUnit& unit = wide[v * wide_stride + u];
        const VF scale = hn::Load(kF, unit.scale[half]);
        for (uint32_t t = 0; t < kTokens; ++t) {
          float* const at = totals + v * totals_stride + t * kN;
          const VI dot = hn::RearrangeToOddPlusEven(sum0[v][t], sum1[v][t]);
          VF total = hn::MulAdd(hn::Mul(hn::ConvertTo(kF, dot), hn::Set(kF, tile.sums.scale[t])),
                                scale, hn::Load(kF, at));
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

// kN rows from a multiple of kN.
HWY_INLINE RowsView rowsFrom(const MatmulTask& task, uint32_t row) {
  const uint32_t* words = task.weights + static_cast<uint64_t>(row / kGroupRows) * task.group_words;
  return {words + 4 * (row % kGroupRows), words + task.side_word + row % kGroupRows};
}

/// Prefetches kN rows for one token. First-level cache: shortly before use, each line once and in order of use, unit by
/// unit. Quads and sides of a group are stored in sequence but used together, so an equal distance for both would load
/// the first lines too late. Second-level cache: long before use, in memory order.
class WeightsAhead {
 public:
  HWY_INLINE WeightsAhead(const MatmulTask& task, const RowsView& rows, uint32_t row)
      : units_(task.units),
        quad_words_(task.quad_words),
        side_words_(task.side_words),
        group_words_(task.group_words),
        at_(task.ahead_unit),
        quads_(rows.quads + task.ahead_words),
        sides_(rows.sides + task.ahead_words),
        first_line_(row % kGroupRows / kN) {}
  /// Call once per unit. The end of the last group is followed by the words read next.
  HWY_INLINE void ask() {
    // Four rows have one line of four.
    ask(quads_ + at_ * quad_words_, quad_words_, kN == 4 ? 4 * kGroupRows : 16);
    ask(sides_ + at_ * side_words_, side_words_, 16);
    if (kSecondLevelAhead != 0) {
      askSecondLevel();
    }
    if (++at_ == units_) {
      at_ = 0;
      quads_ += group_words_;
      sides_ += group_words_;
    }
  }

 private:
  static HWY_INLINE void ask(const uint32_t* words, uint32_t count, uint32_t step) {
    for (uint32_t w = 0; w < count; w += step) {
      hwy::Prefetch(words + w);
    }
  }
  // With fewer rows than a group, the group is visited several times, each time for different lines.
  HWY_INLINE void askSecondLevel() {
    constexpr uint32_t kTimes = kGroupRows / kN;
    const uint32_t unit_words = quad_words_ + side_words_;
    const uint32_t* const words =
        quads_ - 4 * kN * first_line_ + at_ * unit_words + kSecondLevelAhead / 4;
    for (uint32_t w = 16 * first_line_; w < unit_words; w += 16 * kTimes) {
      prefetchSecondLevel(words + w);
    }
  }
  uint32_t units_, quad_words_, side_words_, group_words_;
  uint32_t at_;  // the unit to prefetch
  const uint32_t* quads_;
  const uint32_t* sides_;
  uint32_t first_line_;
};

// Writes the last rows of a matrix, fewer than kN.
inline HWY_NOINLINE void storeLast(const MatmulTask& task, uint32_t row, float* out, VF values) {
  HWY_ALIGN float some[kN];
  hn::Store(values, kF, some);
  for (uint32_t i = 0; row + i < task.rows; ++i) {
    out[i] = task.accumulate ? out[i] + some[i] : some[i];
  }
}

// Writes up to kN rows of one token from `row` on.
HWY_INLINE void store(const MatmulTask& task, uint32_t row, uint32_t token, VF by_lane) {
  const VF values = RowsView::toRows(by_lane);
  float* out = task.out + static_cast<uint64_t>(token) * task.out_stride + row;
  if (row + kN <= task.rows) {
    hn::StoreU(task.accumulate ? hn::Add(hn::LoadU(kF, out), values) : values, kF, out);
    return;
  }
  storeLast(task, row, out, values);
}

// ---- Float weights ---------------------------------------------------------------------------------

/// The sums of kTokens tokens, `stride` floats apart, each as if it were alone.
template <class Format, uint32_t kTokens>
HWY_INLINE void dotFloatsApart(const RowsView& rows, uint32_t units, uint32_t words_per_unit,
                               const float* in, uint64_t stride, VF (&sums)[kTokens]) {
  VF total[kTokens][4];
  for (uint32_t t = 0; t < kTokens; ++t) {
    for (uint32_t i = 0; i < 4; ++i) {
      total[t][i] = hn::Zero(kF);
    }
  }
  for (uint32_t u = 0; u < units; ++u) {
    prefetchQuads(rows.quads + u * words_per_unit, words_per_unit);
    VF values[kUnit];
    Format::load(rows, u, values);
    for (uint32_t i = 0; i < kUnit; ++i) {
      for (uint32_t t = 0; t < kTokens; ++t) {
        total[t][i % 4] =
            hn::MulAdd(values[i], hn::Set(kF, in[t * stride + u * kUnit + i]), total[t][i % 4]);
      }
    }
  }
  for (uint32_t t = 0; t < kTokens; ++t) {
    sums[t] = hn::Add(hn::Add(total[t][0], total[t][1]), hn::Add(total[t][2], total[t][3]));
  }
}

struct FloatUnit {
  HWY_ALIGN float values[kUnit][kN];
};

template <uint32_t kTokens>
static HWY_NOINLINE void dotFloats(const FloatUnit* wide, uint32_t count, const float* x,
                                   uint32_t stride, float* totals) {
  VF total[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    total[t] = hn::Load(kF, totals + t * kN);
  }
  // Unit by unit: sums of few terms have smaller rounding errors than a sum over a whole row.
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

/// As many as their sums have registers.
constexpr uint32_t kTokensApart = HWY_MAX_BYTES == 64 || HWY_ARCH_ARM_A64 ? 4 : 2;

struct FloatTiles {
  using Wide = FloatUnit;
  template <uint32_t>
  static HWY_NOINLINE void tile(const MatmulTask& task, const Wide* wide, uint32_t first,
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

template <class Format>
struct FloatKernel {
  using Tiles = FloatTiles;
  static constexpr uint32_t kVectors = 1;
  static constexpr bool kFloats = true;
  static HWY_INLINE VF one(const MatmulTask& task, uint32_t row) {
    VF sums[1];
    dotFloatsApart<Format, 1>(rowsFrom(task, row), task.units, task.side_word / task.units,
                              static_cast<const float*>(task.in), 0, sums);
    return sums[0];
  }
  // One unit, without the zeros in its second half. Every token adds in the order of one().
  static HWY_NOINLINE void halves(const MatmulTask& task, uint32_t row, uint32_t end) {
    for (; row < end; row += kN) {
      const RowsView rows = rowsFrom(task, row);
      prefetchQuads(rows.quads, task.group_words / 2);
      VF values[kUnit];
      F16::load<kUnit / 2>(rows, 0, values);
      const float* in = static_cast<const float*>(task.in);
      for (uint32_t t = 0; t < task.n_tokens; ++t, in += task.in_stride) {
        const uint32_t later = HWY_MIN(t + kTileTokens, task.n_tokens - 1);
        prefetchForWriting(task.out + uint64_t{later} * task.out_stride + row);
        VF total[4];
        for (uint32_t i = 0; i < 4; ++i) {
          total[i] = hn::Mul(values[i], hn::Set(kF, in[i]));
        }
        for (uint32_t i = 4; i < kUnit / 2; ++i) {
          total[i % 4] = hn::MulAdd(values[i], hn::Set(kF, in[i]), total[i % 4]);
        }
        store(task, row, t, hn::Add(hn::Add(total[0], total[1]), hn::Add(total[2], total[3])));
      }
    }
  }
  // kN rows that begin at `row`.
  static HWY_INLINE void apart(const MatmulTask& task, uint32_t row) {
    uint32_t t = 0;
    for (; t + kTokensApart <= task.n_tokens; t += kTokensApart) {
      someApart<kTokensApart>(task, row, t);
    }
    for (; t < task.n_tokens; ++t) {
      someApart<1>(task, row, t);
    }
  }
  template <uint32_t kTokens>
  static HWY_NOINLINE void someApart(const MatmulTask& task, uint32_t row, uint32_t token) {
    VF sums[kTokens];
    const float* const in =
        static_cast<const float*>(task.in) + static_cast<uint64_t>(token) * task.in_stride;
    dotFloatsApart<Format, kTokens>(rowsFrom(task, row), task.units, task.side_word / task.units,
                                    in, task.in_stride, sums);
    for (uint32_t t = 0; t < kTokens; ++t) {
      store(task, row, token + t, sums[t]);
    }
  }
  static HWY_INLINE void unpack(const RowsView& rows, uint32_t first, uint32_t count,
                                FloatUnit* wide) {
    for (uint32_t u = 0; u < count; ++u) {
      VF values[kUnit];
      Format::load(rows, first + u, values);
      for (uint32_t i = 0; i < kUnit; ++i) {
        hn::Store(values[i], kF, wide[u].values[i]);
      }
    }
  }
};

// ---- Rows of a matrix ------------------------------------------------------------------------------

constexpr uint32_t kMostTokens = 64;  // whose totals are kept at a time

HWY_INLINE void storeSums(const IntUnitSums& of, uint32_t token, TileSums* sums) {
  sums->scale[token] = of.scale;
  for (uint32_t part = 0; part < 3; ++part) {
    sums->scaled[part][token] = of.scaled[part];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
