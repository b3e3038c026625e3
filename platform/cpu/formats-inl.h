// Weights of every format in vector registers, lanes = rows. Compiled once per target.
//
// A group of 16 rows is processed kN rows at a time. Its quads are loaded as vectors of kN / 4 rows of four
// words. Transposed in blocks of four, they are vectors of one word of kN rows each, with row
// (lane % 4) * (kN / 4) + lane / 4 in each lane. Side words are permuted to that order.
#if defined(ORIEL_CPU_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_FORMATS_INL_H_
#undef ORIEL_CPU_FORMATS_INL_H_
#else
#define ORIEL_CPU_FORMATS_INL_H_
#endif

#include "cpu/kernels.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
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

  HWY_INLINE VU side(uint32_t s) const { return toLanes(hn::LoadU(kU, sides + s * kGroupRows)); }

  /// Converts from row order to lane order, and back.
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

/// A unit of kN rows: values 4j .. 4j + 3 of each row are the bytes of bytes[j]. A value is
/// scale[h] * (byte - zero) - minimum[h], h = 0 for values 0..15, 1 for 16..31.
struct ByteUnit {
  HWY_INLINE ByteUnit() {}  // a generated constructor would lack the target's instructions
  VU bytes[8];
  VF scale[2];
  VF minimum[2];
};

// Properties of a format: kSigned (bytes in two's complement), kHalves (scale[1] differs from scale[0]),
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

// The scale of a unit, if a word holds the scales of two units.
HWY_INLINE VF pairedScale(VU word, uint32_t unit) {
  return unit % 2 == 0 ? lowHalves(word) : highHalves(word);
}

/// bytes[j] |= bit j of every byte of `bits`, moved up by kBit.
template <int kBit>
HWY_INLINE void addHighBits(VU bits, ByteUnit* unit) {
  const VU one = hn::Set(kU, 0x01010101u);
  for (int j = 0; j < 8; ++j) {
    const VU bit = hn::ShiftLeft<kBit>(hn::And(hn::ShiftRightSame(bits, j), one));
    unit->bytes[j] = hn::Or(unit->bytes[j], bit);
  }
}

/// A word of sixteen 2-bit values: values 4f .. 4f + 3 as the bytes of out[f].
HWY_INLINE void twoBitWord(VU word, VU (&out)[4]) {
  const VU three = hn::Set(kU, 0x03030303u);
  out[0] = hn::And(word, three);
  out[1] = hn::And(hn::ShiftRight<2>(word), three);
  out[2] = hn::And(hn::ShiftRight<4>(word), three);
  out[3] = hn::And(hn::ShiftRight<6>(word), three);
}

/// Byte i % 4 of every word as a float.
HWY_INLINE VF byteOf(VU words, uint32_t i) {
  const VU byte =
      hn::And(hn::ShiftRightSame(words, static_cast<int>(8 * (i % 4))), hn::Set(kU, 0xffu));
  return hn::ConvertTo(kF, hn::BitCast(kI, byte));
}
HWY_INLINE VF signedByte(VU words, uint32_t i) {
  const VU top = hn::ShiftLeftSame(words, static_cast<int>(24 - 8 * (i % 4)));
  return hn::ConvertTo(kF, hn::ShiftRight<24>(hn::BitCast(kI, top)));
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

struct Q5_0 : Traits<false, false, false, 16> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 2 * 3;
    nibbleQuad(rows, unit, out);
    addHighBits<4>(rows.side(at + unit % 2), out);
    out->scale[0] = pairedScale(rows.side(at + 2), unit);
  }
};

struct Q4_1 : Traits<false, false, true, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    const VU both = rows.side(unit);
    out->scale[0] = lowHalves(both);
    out->minimum[0] = hn::Neg(highHalves(both));
  }
};

struct Q5_1 : Traits<false, false, true, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    addHighBits<4>(rows.side(2 * unit), out);
    const VU both = rows.side(2 * unit + 1);
    out->scale[0] = lowHalves(both);
    out->minimum[0] = hn::Neg(highHalves(both));
  }
};

/// Replaces bytes 0 .. 15 by their table values.
HWY_INLINE void lookUp(const int8_t* values, ByteUnit* unit) {
  const hn::Repartition<int8_t, DF> k8;
  const auto table = hn::LoadDup128(k8, values);
  for (VU& bytes : unit->bytes) {
    bytes = hn::BitCast(kU, hn::TableLookupBytes(table, hn::BitCast(k8, bytes)));
  }
}

HWY_INLINE void lookUpIq4(ByteUnit* unit) {
  HWY_ALIGN static constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
  lookUp(kValues, unit);
}

struct Iq4Nl : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    lookUpIq4(out);
    out->scale[0] = pairedScale(rows.side(unit / 2), unit);
  }
};

// Formats with blocks of 256 values; at = the block's first side word.

struct Iq4Xs : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 3;
    nibbleQuad(rows, unit, out);
    lookUpIq4(out);
    out->scale[0] =
        hn::Mul(lowHalves(rows.side(at)), signedByte(rows.side(at + 1 + unit % 8 / 4), unit));
  }
};

template <uint32_t kSideWords>
HWY_INLINE void loadKScales(const RowsView& rows, uint32_t unit, ByteUnit* out) {
  const uint32_t at = unit / 8 * kSideWords;
  const uint32_t word = unit % 8 / 4;
  const VU both = rows.side(at);
  out->scale[0] = hn::Mul(lowHalves(both), byteOf(rows.side(at + 1 + word), unit));
  out->minimum[0] = hn::Mul(highHalves(both), byteOf(rows.side(at + 3 + word), unit));
}

struct Q4_K : Traits<false, false, true, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    loadKScales<5>(rows, unit, out);
  }
};

struct Q5_K : Traits<false, false, true, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    addHighBits<4>(rows.side(unit / 8 * 13 + 5 + unit % 8), out);
    loadKScales<13>(rows, unit, out);
  }
};

// Scales of sixteen values as signed bytes, two to a unit.
HWY_INLINE void loadHalfScales(const RowsView& rows, uint32_t at, uint32_t unit, ByteUnit* out) {
  const VF d = lowHalves(rows.side(at));
  const VU word = rows.side(at + 1 + unit % 8 / 2);
  out->scale[0] = hn::Mul(d, signedByte(word, 2 * unit));
  out->scale[1] = hn::Mul(d, signedByte(word, 2 * unit + 1));
}

struct Q6_K : Traits<false, true, false, 32> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 21;
    nibbleQuad(rows, unit, out);
    for (uint32_t half = 0; half < 2; ++half) {
      VU high[4];
      twoBitWord(rows.side(at + 5 + 2 * (unit % 8) + half), high);
      for (uint32_t f = 0; f < 4; ++f) {
        VU& bytes = out->bytes[4 * half + f];
        bytes = hn::Or(bytes, hn::ShiftLeft<4>(high[f]));
      }
    }
    loadHalfScales(rows, at, unit, out);
  }
};

HWY_INLINE void twoBitQuad(const RowsView& rows, uint32_t unit, ByteUnit* out) {
  VU words[4];
  rows.quad(unit / 2, words);
  const bool second = unit % 2 != 0;
  VU low[4];
  VU high[4];
  twoBitWord(second ? words[2] : words[0], low);
  twoBitWord(second ? words[3] : words[1], high);
  for (uint32_t f = 0; f < 4; ++f) {
    out->bytes[f] = low[f];
    out->bytes[4 + f] = high[f];
  }
}

struct Q3_K : Traits<false, true, false, 4> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 13;
    twoBitQuad(rows, unit, out);
    addHighBits<2>(rows.side(at + 5 + unit % 8), out);
    loadHalfScales(rows, at, unit, out);
  }
};

struct Q2_K : Traits<false, true, true, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 5;
    twoBitQuad(rows, unit, out);
    const VU both = rows.side(at);
    const VU word = rows.side(at + 1 + unit % 8 / 2);
    const VU low = hn::And(word, hn::Set(kU, 0x0f0f0f0fu));
    const VU high = nibbles(hn::ShiftRight<4>(word));
    for (uint32_t half = 0; half < 2; ++half) {
      out->scale[half] = hn::Mul(lowHalves(both), byteOf(low, 2 * unit + half));
      out->minimum[half] = hn::Mul(highHalves(both), byteOf(high, 2 * unit + half));
    }
  }
};

struct Q2_0 : Traits<false, false, false, 1> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    twoBitQuad(rows, unit, out);
    out->scale[0] = pairedScale(rows.side(unit / 4), unit / 2);
  }
};

// Bytes of 0 and 2.
struct Q1_0 : Traits<false, false, false, 1> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 9;
    for (VU& bytes : out->bytes) {
      bytes = hn::Zero(kU);
    }
    addHighBits<1>(rows.side(at + 1 + unit % 8), out);
    out->scale[0] = pairedScale(rows.side(at), unit / 4);
  }
};

/// Looks up 4-bit floats, multiplied by 2.
HWY_INLINE void lookUpFp4(ByteUnit* unit) {
  HWY_ALIGN static constexpr int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                   0, -1, -2, -3, -4, -6, -8, -12};
  lookUp(kValues, unit);
}

struct Nvfp4 : Traits<true, true, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    lookUpFp4(out);
    const VU word = rows.side(unit / 2);
    for (uint32_t half = 0; half < 2; ++half) {
      // Half of an unsigned float with 4 exponent and 3 mantissa bits; the largest code is NaN.
      const int shift = static_cast<int>(8 * (2 * (unit % 2) + half));
      const VU byte = hn::And(hn::ShiftRightSame(word, shift), hn::Set(kU, 0x7fu));
      const VU e = hn::ShiftRight<3>(byte);
      const VU m = hn::And(byte, hn::Set(kU, 7));
      const auto normal = hn::Gt(e, hn::Zero(kU));
      const VU whole = hn::IfThenElse(normal, hn::Add(m, hn::Set(kU, 8)), m);
      const VU power =
          hn::ShiftLeft<23>(hn::Add(hn::Max(e, hn::Set(kU, 1)), hn::Set(kU, 127 - 11)));
      const VF scale = hn::Mul(hn::ConvertTo(kF, hn::BitCast(kI, whole)), hn::BitCast(kF, power));
      out->scale[half] =
          hn::IfThenZeroElse(hn::RebindMask(kF, hn::Eq(byte, hn::Set(kU, 0x7fu))), scale);
    }
  }
};

struct Mxfp4 : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    nibbleQuad(rows, unit, out);
    lookUpFp4(out);
    const VU e = hn::And(hn::ShiftRightSame(rows.side(unit / 4), static_cast<int>(8 * (unit % 4))),
                         hn::Set(kU, 0xffu));
    // 2^(e - 128); the two smallest are subnormal.
    const VU one = hn::Set(kU, 1);
    const VU power = hn::IfThenElse(hn::Lt(e, hn::Set(kU, 2)), hn::ShiftLeft<21>(hn::Add(e, one)),
                                    hn::ShiftLeft<23>(hn::Sub(e, one)));
    out->scale[0] = hn::BitCast(kF, power);
  }
};

// Codebook formats, which have side words only. A code is looked up, with its sign above it.

/// d (2 scale + 1) / kDivisor
template <uint32_t kDivisor>
HWY_INLINE VF oddScale(VF d, VU scale) {
  const VF odd = hn::ConvertTo(kF, hn::BitCast(kI, hn::Add(hn::Add(scale, scale), hn::Set(kU, 1))));
  return hn::Mul(hn::Mul(d, hn::Set(kF, 1.0f / kDivisor)), odd);
}

/// Bits that a sign word stores in the places of every eighth sign.
HWY_INLINE VU insteadOfSigns(VU word) {
  const VU a = hn::And(hn::ShiftRight<25>(word), hn::Set(kU, 1));
  const VU b = hn::And(hn::ShiftRight<26>(word), hn::Set(kU, 2));
  const VU c = hn::And(hn::ShiftRight<27>(word), hn::Set(kU, 4));
  const VU d = hn::And(hn::ShiftRight<28>(word), hn::Set(kU, 8));
  return hn::Or(hn::Or(a, b), hn::Or(c, d));
}

/// Adds the eighth signs: each is the parity of the seven before it.
HWY_INLINE VU evenSigns(VU word) {
  const VU known = hn::And(word, hn::Set(kU, 0x55ffffffu));
  VU sums = hn::Xor(known, hn::ShiftRight<16>(known));
  sums = hn::Xor(sums, hn::ShiftRight<8>(sums));
  sums = hn::Xor(sums, hn::ShiftRight<1>(sums));
  return hn::Or(known, hn::ShiftLeft<25>(hn::And(sums, hn::Set(kU, 0x55u))));
}

HWY_INLINE VU byteWord(VU words, uint32_t i) {
  return hn::And(hn::ShiftRightSame(words, static_cast<int>(8 * i)), hn::Set(kU, 0xffu));
}
HWY_INLINE VU entries(const uint32_t* book, VU index) {
  return hn::GatherIndex(kU, book, hn::BitCast(kI, index));
}

/// Values 8l .. 8l + 7 of an entry: the first four's codes in the low 2 bits of bytes, the others' above.
HWY_INLINE void putEight(VU entry, uint32_t l, ByteUnit* out) {
  const VU three = hn::Set(kU, 0x03030303u);
  out->bytes[2 * l] = hn::And(entry, three);
  out->bytes[2 * l + 1] = hn::And(hn::ShiftRight<2>(entry), three);
}

HWY_INLINE void signIq2(VU signs, ByteUnit* out) {
  HWY_ALIGN static constexpr int8_t kValues[16] = {8, 25, 43, 0, -8, -25, -43, 0};
  addHighBits<2>(signs, out);
  lookUp(kValues, out);
}

/// The scales of a unit's halves, `at` being the first word of a block's scales.
HWY_INLINE void halfNibbleScales(const RowsView& rows, VF d, uint32_t at, uint32_t unit,
                                 ByteUnit* out) {
  const VU pair = byteWord(rows.side(at + unit % 8 / 4), unit % 4);
  out->scale[0] = oddScale<8>(d, hn::And(pair, hn::Set(kU, 15)));
  out->scale[1] = oddScale<8>(d, hn::ShiftRight<4>(pair));
}

struct Iq2Xxs : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 17;
    const VU low = rows.side(at + 1 + unit % 8);
    const VU signs = rows.side(at + 9 + unit % 8);
    for (uint32_t l = 0; l < 4; ++l) {
      putEight(entries(kIq2XxsBook.words, byteWord(low, l)), l, out);
    }
    signIq2(evenSigns(signs), out);
    out->scale[0] = oddScale<8>(lowHalves(rows.side(at)), insteadOfSigns(signs));
  }
};

struct Iq2Xs : Traits<true, true, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 19;
    const VU low = rows.side(at + 3 + unit % 8);
    const VU signs = rows.side(at + 11 + unit % 8);
    for (uint32_t l = 0; l < 4; ++l) {
      const VU high =
          hn::And(hn::ShiftRightSame(signs, static_cast<int>(17 + 2 * l)), hn::Set(kU, 0x100u));
      putEight(entries(kIq2XsBook.words, hn::Or(byteWord(low, l), high)), l, out);
    }
    signIq2(evenSigns(signs), out);
    halfNibbleScales(rows, lowHalves(rows.side(at)), at + 1, unit, out);
  }
};

struct Iq2S : Traits<true, true, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    const uint32_t at = unit / 8 * 21;
    const VU low = rows.side(at + 3 + unit % 8);
    const VU high = byteWord(rows.side(at + 11 + unit % 8 / 4), unit % 4);
    for (uint32_t l = 0; l < 4; ++l) {
      const VU bits =
          hn::And(hn::ShiftLeftSame(high, static_cast<int>(8 - 2 * l)), hn::Set(kU, 0x300u));
      putEight(entries(kIq2SBook.words, hn::Or(byteWord(low, l), bits)), l, out);
    }
    signIq2(rows.side(at + 13 + unit % 8), out);
    halfNibbleScales(rows, lowHalves(rows.side(at)), at + 1, unit, out);
  }
};

struct Iq3Xxs : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    HWY_ALIGN static constexpr int8_t kValues[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                                     -4, -12, -20, -28, -36, -44, -52, -62};
    const uint32_t at = unit / 8 * 25;
    const VU signs = rows.side(at + 17 + unit % 8);
    for (uint32_t half = 0; half < 2; ++half) {
      const VU indices = rows.side(at + 1 + unit % 8 * 2 + half);
      for (uint32_t l = 0; l < 4; ++l) {
        out->bytes[4 * half + l] = entries(kIq3XxsBook.words, byteWord(indices, l));
      }
    }
    addHighBits<3>(evenSigns(signs), out);
    lookUp(kValues, out);
    out->scale[0] = oddScale<4>(lowHalves(rows.side(at)), insteadOfSigns(signs));
  }
};

struct Iq3S : Traits<true, false, false, 0> {
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, ByteUnit* out) {
    HWY_ALIGN static constexpr int8_t kValues[16] = {1,  3,  5,  7,  9,  11,  13,  15,
                                                     -1, -3, -5, -7, -9, -11, -13, -15};
    const uint32_t at = unit / 8 * 28;
    const VU high = byteWord(rows.side(at + 18 + unit % 8 / 4), unit % 4);
    for (uint32_t half = 0; half < 2; ++half) {
      const VU low = rows.side(at + 2 + unit % 8 * 2 + half);
      for (uint32_t l = 0; l < 4; ++l) {
        const VU bit = hn::And(hn::ShiftLeftSame(high, static_cast<int>(8 - 4 * half - l)),
                               hn::Set(kU, 0x100u));
        out->bytes[4 * half + l] = entries(kIq3SBook.words, hn::Or(byteWord(low, l), bit));
      }
    }
    addHighBits<3>(rows.side(at + 20 + unit % 8), out);
    lookUp(kValues, out);
    const VU scale = hn::And(
        hn::ShiftRightSame(rows.side(at + 1), static_cast<int>(4 * (unit % 8))), hn::Set(kU, 15));
    out->scale[0] = oddScale<1>(lowHalves(rows.side(at)), scale);
  }
};

// Float formats.

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
  /// `kValues`: number of values, from the beginning.
  template <uint32_t kValues = kUnit>
  static HWY_INLINE void load(const RowsView& rows, uint32_t unit, VF (&values)[kUnit]) {
    VU words[4];
    for (uint32_t q = 0; q < kValues / 8; ++q) {
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
        values[8 * q + 2 * j + 1] = hn::BitCast(kF, hn::And(words[j], hn::Set(kU, 0xffff0000u)));
      }
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
