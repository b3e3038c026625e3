// Weights of one format in vector registers, lanes = rows, and their products. Compiled once per target.
//
// A group of 16 rows is worked on kN rows at a time. Its quads come as vectors of kN / 4 rows of four
// words; transposed in blocks of four they are vectors of one word of kN rows each, row
// (lane % 4) * (kN / 4) + lane / 4 in each lane. Side words are permuted to that order.
#if defined(ORIEL_CPU_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_MATMUL_INL_H_
#undef ORIEL_CPU_MATMUL_INL_H_
#else
#define ORIEL_CPU_MATMUL_INL_H_
#endif

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel {
namespace HWY_NAMESPACE {

constexpr uint32_t kBlockRows = kN / 4;

/// kN rows of a group.
struct RowsView {
  const uint32_t* quads;
  const uint32_t* sides;

  /// Word w of quad q in words[w].
  HWY_INLINE void quad(uint32_t q, VU (&words)[4]) const {
    const uint32_t* p = quads + q * (4 * kGroupRows);
    const VU a = hn::LoadU(kU, p);
    const VU b = hn::LoadU(kU, p + kN);
    const VU c = hn::LoadU(kU, p + 2 * kN);
    const VU d = hn::LoadU(kU, p + 3 * kN);
    const hn::Repartition<uint64_t, DU> k64;
    const auto ab = hn::BitCast(k64, hn::InterleaveLower(kU, a, b));
    const auto cd = hn::BitCast(k64, hn::InterleaveLower(kU, c, d));
    const auto ab2 = hn::BitCast(k64, hn::InterleaveUpper(kU, a, b));
    const auto cd2 = hn::BitCast(k64, hn::InterleaveUpper(kU, c, d));
    words[0] = hn::BitCast(kU, hn::InterleaveLower(k64, ab, cd));
    words[1] = hn::BitCast(kU, hn::InterleaveUpper(k64, ab, cd));
    words[2] = hn::BitCast(kU, hn::InterleaveLower(k64, ab2, cd2));
    words[3] = hn::BitCast(kU, hn::InterleaveUpper(k64, ab2, cd2));
  }

  HWY_INLINE VU side(uint32_t s) const {
    return toLanes(hn::LoadU(kU, sides + s * kGroupRows));
  }

  /// From the order of rows to that of lanes, and back.
  static HWY_INLINE VU toLanes(VU by_row) {
    if (kN == 4) {
      return by_row;
    }
    HWY_ALIGN uint32_t index[kN];
    for (uint32_t i = 0; i < kN; ++i) {
      index[i] = (i % 4) * kBlockRows + i / 4;
    }
    return hn::TableLookupLanes(by_row, hn::SetTableIndices(kU, index));
  }
  static HWY_INLINE VF toRows(VF by_lane) {
    if (kN == 4) {
      return by_lane;
    }
    HWY_ALIGN int32_t index[kN];
    for (uint32_t i = 0; i < kN; ++i) {
      index[i] = static_cast<int32_t>((i % kBlockRows) * 4 + i / kBlockRows);
    }
    return hn::TableLookupLanes(by_lane, hn::SetTableIndices(kF, index));
  }
};

/// A unit of kN rows: values 4j .. 4j + 3 of each row are the bytes of bytes[j]. What they stand for is
/// scale[h] * (byte - zero) - minimum[h], h = 0 for values 0..15, 1 for 16..31.
struct ByteUnit {
  VU bytes[8];
  VF scale[2];
  VF minimum[2];
};

// What a format is: kSigned (bytes in two's complement), kHalves (scale[1] differs from scale[0]),
// kMinimum, kZero.
template <bool signed_bytes, bool halves, bool has_minimum, int32_t zero>
struct Traits {
  static constexpr bool kSigned = signed_bytes;
  static constexpr bool kHalves = halves;
  static constexpr bool kMinimum = has_minimum;
  static constexpr int32_t kZero = zero;
};

HWY_INLINE VU nibbles(VU words) { return hn::And(words, hn::Set(kU, 0x0f0f0f0fu)); }

HWY_INLINE void nibbleQuad(const RowsView& rows, uint32_t quad, ByteUnit* unit) {
  VU words[4];
  rows.quad(quad, words);
  for (uint32_t j = 0; j < 4; ++j) {
    unit->bytes[j] = nibbles(words[j]);
    unit->bytes[4 + j] = nibbles(hn::ShiftRight<4>(words[j]));
  }
}

// The scale of a unit where a word holds those of two.
HWY_INLINE VF pairedScale(VU word, uint32_t unit) {
  return unit % 2 == 0 ? lowHalves(word) : highHalves(word);
}

struct Q4_0 : Traits<false, false, false, 8> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    out->scale[0] = pairedScale(rows.side(unit / 2), unit);
  }
};

struct Q8_0 : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    VU words[4];
    rows.quad(2 * unit, words);
    for (uint32_t j = 0; j < 4; ++j) {
      out->bytes[j] = words[j];
    }
    rows.quad(2 * unit + 1, words);
    for (uint32_t j = 0; j < 4; ++j) {
      out->bytes[4 + j] = words[j];
    }
    out->scale[0] = pairedScale(rows.side(unit / 2), unit);
  }
};

/// Bytes 0 and 2, or 1 and 3, of every word as 16-bit numbers.
template <bool kSigned>
HWY_INLINE VI16 evenBytes(VU words) {
  if (kSigned) {
    return hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(kI16, words)));
  }
  return hn::BitCast(kI16, hn::And(words, hn::Set(kU, 0x00ff00ffu)));
}
template <bool kSigned>
HWY_INLINE VI16 oddBytes(VU words) {
  if (kSigned) {
    return hn::ShiftRight<8>(hn::BitCast(kI16, words));
  }
  return hn::BitCast(kI16, hn::ShiftRight<8>(hn::BitCast(kU16, words)));
}

/// A pair of activations in every lane.
HWY_INLINE VI16 pairOf(const IntUnit& unit, uint32_t pair) {
  int32_t both;
  hwy::CopyBytes<4>(unit.values + 2 * pair, &both);
  return hn::BitCast(kI16, hn::Set(kI, both));
}

/// Integer dot products of kN rows; two, so that additions do not wait for each other.
struct Sums {
  VI low0, low1, high0, high1;

  HWY_INLINE void start(int32_t low, int32_t high) {
    low0 = hn::Set(kI, low);
    high0 = hn::Set(kI, high);
    low1 = hn::Zero(kI);
    high1 = hn::Zero(kI);
  }
  HWY_INLINE void addLow(VI16 w, VI16 x) {
    low0 = hn::ReorderWidenMulAccumulate(kI, w, x, low0, low1);
  }
  HWY_INLINE void addHigh(VI16 w, VI16 x) {
    high0 = hn::ReorderWidenMulAccumulate(kI, w, x, high0, high1);
  }
  HWY_INLINE VF low() const {
    return hn::ConvertTo(kF, hn::RearrangeToOddPlusEven(low0, low1));
  }
  HWY_INLINE VF high() const {
    return hn::ConvertTo(kF, hn::RearrangeToOddPlusEven(high0, high1));
  }
  HWY_INLINE VF both() const {
    return hn::ConvertTo(kF, hn::Add(hn::RearrangeToOddPlusEven(low0, low1),
                                     hn::RearrangeToOddPlusEven(high0, high1)));
  }
};

/// total += what the sums of one unit stand for.
template <class Format>
HWY_INLINE VF addUnit(const Sums& sums, const IntUnitSums& x, VF scale0, VF scale1, VF minimum0,
                      VF minimum1, VF total) {
  const VF x_scale = hn::Set(kF, x.scale);
  if (Format::kHalves) {
    total = hn::MulAdd(hn::Mul(sums.low(), x_scale), scale0, total);
    total = hn::MulAdd(hn::Mul(sums.high(), x_scale), scale1, total);
  } else {
    total = hn::MulAdd(hn::Mul(sums.both(), x_scale), scale0, total);
  }
  if (Format::kMinimum && Format::kHalves) {
    total = hn::NegMulAdd(minimum0, hn::Set(kF, x.scale * static_cast<float>(x.low)), total);
    total = hn::NegMulAdd(minimum1, hn::Set(kF, x.scale * static_cast<float>(x.high)), total);
  } else if (Format::kMinimum) {
    total = hn::NegMulAdd(minimum0, hn::Set(kF, x.scaled), total);
  }
  return total;
}

/// kN rows times one token.
template <class Format>
HWY_INLINE VF dotOne(const RowsView& rows, uint32_t units, const void* in) {
  const IntUnit* x = static_cast<const IntUnit*>(in);
  const IntUnitSums* x_sums = reinterpret_cast<const IntUnitSums*>(x + units);
  VF total = hn::Zero(kF);
  for (uint32_t u = 0; u < units; ++u) {
    ByteUnit unit;
    Format::load(rows, u, &unit);
    Sums sums;
    sums.start(-Format::kZero * x_sums[u].low, -Format::kZero * x_sums[u].high);
    for (uint32_t j = 0; j < 4; ++j) {
      const VU low = unit.bytes[j];
      const VU high = unit.bytes[4 + j];
      sums.addLow(evenBytes<Format::kSigned>(low), pairOf(x[u], 2 * j));
      sums.addHigh(evenBytes<Format::kSigned>(high), pairOf(x[u], 8 + 2 * j));
      sums.addLow(oddBytes<Format::kSigned>(low), pairOf(x[u], 2 * j + 1));
      sums.addHigh(oddBytes<Format::kSigned>(high), pairOf(x[u], 8 + 2 * j + 1));
    }
    total = addUnit<Format>(sums, x_sums[u], unit.scale[0], unit.scale[1], unit.minimum[0],
                            unit.minimum[1], total);
  }
  return total;
}

/// A unit of kN rows, widened, in memory: unpacked once for all tokens of a chunk.
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
      hn::Store(evenBytes<Format::kSigned>(unit.bytes[j]), kI16, out[u].values[2 * j]);
      hn::Store(oddBytes<Format::kSigned>(unit.bytes[j]), kI16, out[u].values[2 * j + 1]);
    }
    hn::Store(unit.scale[0], kF, out[u].scale[0]);
    if (Format::kHalves) {
      hn::Store(unit.scale[1], kF, out[u].scale[1]);
    }
    if (Format::kMinimum) {
      hn::Store(unit.minimum[0], kF, out[u].minimum[0]);
      if (Format::kHalves) {
        hn::Store(unit.minimum[1], kF, out[u].minimum[1]);
      }
    }
  }
}

/// totals[t][kN] += kN rows times kTokens tokens over `count` units from `first`.
template <class Format, uint32_t kTokens>
HWY_NOINLINE void dotWide(const WideUnit* wide, uint32_t first, uint32_t count, uint32_t units,
                          const uint8_t* in, uint64_t stride_bytes, float* totals) {
  VF total[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    total[t] = hn::Load(kF, totals + t * kN);
  }
  for (uint32_t u = 0; u < count; ++u) {
    const WideUnit& unit = wide[u];
    VI16 w[16];
    for (uint32_t i = 0; i < 16; ++i) {
      w[i] = hn::Load(kI16, unit.values[i]);
    }
    const VF scale0 = hn::Load(kF, unit.scale[0]);
    const VF scale1 = Format::kHalves ? hn::Load(kF, unit.scale[1]) : scale0;
    const VF minimum0 = Format::kMinimum ? hn::Load(kF, unit.minimum[0]) : scale0;
    const VF minimum1 =
        Format::kMinimum && Format::kHalves ? hn::Load(kF, unit.minimum[1]) : scale0;
    for (uint32_t t = 0; t < kTokens; ++t) {
      const IntUnit* row = reinterpret_cast<const IntUnit*>(in + t * stride_bytes);
      const IntUnit& x = row[first + u];
      const IntUnitSums& x_sums = reinterpret_cast<const IntUnitSums*>(row + units)[first + u];
      Sums sums;
      sums.start(-Format::kZero * x_sums.low, -Format::kZero * x_sums.high);
      for (uint32_t i = 0; i < 8; ++i) {
        sums.addLow(w[i], pairOf(x, i));
        sums.addHigh(w[8 + i], pairOf(x, 8 + i));
      }
      total[t] = addUnit<Format>(sums, x_sums, scale0, scale1, minimum0, minimum1, total[t]);
    }
  }
  for (uint32_t t = 0; t < kTokens; ++t) {
    hn::Store(total[t], kF, totals + t * kN);
  }
}

// ---- Float weights ---------------------------------------------------------------------------------

struct F32 {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, VF (&values)[kUnit]) {
    VU words[4];
    for (uint32_t q = 0; q < 8; ++q) {
      rows.quad(8 * unit + q, words);
      for (uint32_t j = 0; j < 4; ++j) {
        values[4 * q + j] = hn::BitCast(kF, words[j]);
      }
    }
  }
};

struct F16 {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, VF (&values)[kUnit]) {
    VU words[4];
    for (uint32_t q = 0; q < 4; ++q) {
      rows.quad(4 * unit + q, words);
      for (uint32_t j = 0; j < 4; ++j) {
        values[8 * q + 2 * j] = lowHalves(words[j]);
        values[8 * q + 2 * j + 1] = highHalves(words[j]);
      }
    }
  }
};

struct Bf16 {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, VF (&values)[kUnit]) {
    VU words[4];
    for (uint32_t q = 0; q < 4; ++q) {
      rows.quad(4 * unit + q, words);
      for (uint32_t j = 0; j < 4; ++j) {
        values[8 * q + 2 * j] = hn::BitCast(kF, hn::ShiftLeft<16>(words[j]));
        values[8 * q + 2 * j + 1] =
            hn::BitCast(kF, hn::And(words[j], hn::Set(kU, 0xffff0000u)));
      }
    }
  }
};

template <class Format>
HWY_INLINE VF dotOneFloat(const RowsView& rows, uint32_t units, const float* in) {
  VF total[4] = {hn::Zero(kF), hn::Zero(kF), hn::Zero(kF), hn::Zero(kF)};
  for (uint32_t u = 0; u < units; ++u) {
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
HWY_NOINLINE void dotFloats(const FloatUnit* wide, uint32_t first, uint32_t count, const uint8_t* in,
                            uint64_t stride_bytes, float* totals) {
  VF total[kTokens];
  for (uint32_t t = 0; t < kTokens; ++t) {
    total[t] = hn::Load(kF, totals + t * kN);
  }
  const float* x = reinterpret_cast<const float*>(in) + first * kUnit;
  const uint64_t stride = stride_bytes / sizeof(float);
  for (uint32_t i = 0; i < count * kUnit; ++i) {
    const VF w = hn::Load(kF, wide[i / kUnit].values[i % kUnit]);
    for (uint32_t t = 0; t < kTokens; ++t) {
      total[t] = hn::MulAdd(w, hn::Set(kF, x[t * stride + i]), total[t]);
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
