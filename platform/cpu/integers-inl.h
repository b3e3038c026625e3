// Products of bytes with activations rounded to 16 bits (kernels.h). Compiled once per target.
#if defined(ORIEL_CPU_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_INTEGERS_INL_H_
#undef ORIEL_CPU_INTEGERS_INL_H_
#else
#define ORIEL_CPU_INTEGERS_INL_H_
#endif

#include "cpu/kernels.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

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

/// sum0 + sum1 += w . x, in pairs; RearrangeToOddPlusEven adds both.
HWY_INLINE VI addProducts(VI16 w, VI16 x, VI sum0, VI& sum1) {
#if HWY_TARGET == HWY_AVX3
  (void)sum1;
#if HWY_COMPILER_GCC_ACTUAL
  // With the intrinsic, GCC copies every sum to another register and back, unless a loop is written out.
  asm("vpdpwssd\t{%2, %1, %0|%0, %1, %2}" : "+v"(sum0.raw) : "v"(w.raw), "v"(x.raw));
  return sum0;
#else
  return VI{_mm512_dpwssd_epi32(sum0.raw, w.raw, x.raw)};
#endif
#else
  return hn::ReorderWidenMulAccumulate(kI, w, x, sum0, sum1);
#endif
}

#if HWY_TARGET == HWY_AVX3
/// sum += w . x over four bytes, w unsigned and x signed.
HWY_INLINE VI addByteProducts(VU w, VI x, VI sum) {
#if HWY_COMPILER_GCC_ACTUAL
  asm("vpdpbusd\t{%2, %1, %0|%0, %1, %2}" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
  return sum;
#else
  return VI{_mm512_dpbusd_epi32(sum.raw, w.raw, x.raw)};
#endif
}

/// Four bytes of a plane in every lane.
HWY_INLINE VI fourOf(const int8_t* plane, uint32_t j) {
  int32_t four;
  hwy::CopyBytes<4>(plane + 4 * j, &four);
  return hn::Set(kI, four);
}
#endif

/// Integer dot products of kN rows, in two sums each, so that additions do not wait for each other.
struct Sums {
  VI low0, low1, high0, high1;

  // Generated constructors would lack the target's instructions.
  HWY_INLINE Sums() {}
  HWY_INLINE void clear() { low0 = low1 = high0 = high1 = hn::Zero(kI); }

  HWY_INLINE void addLow(VI16 w, VI16 x) { low0 = addProducts(w, x, low0, low1); }
  HWY_INLINE void addHigh(VI16 w, VI16 x) { high0 = addProducts(w, x, high0, high1); }
  HWY_INLINE VI low() const { return hn::RearrangeToOddPlusEven(low0, low1); }
  HWY_INLINE VI high() const { return hn::RearrangeToOddPlusEven(high0, high1); }
  HWY_INLINE VI both() const { return hn::Add(low(), high()); }
};

/// kUnit floats as integers up to `most_code`, with their sums.
struct Codes {
  HWY_INLINE Codes() {}
  VI values[kUnit / kN];
  IntUnitSums sums;
};

HWY_INLINE void quantiseUnit(const float* in, int32_t most_code, Codes* out) {
  constexpr uint32_t kVectors = kUnit / kN;
  VF x[kVectors];
  VF most = hn::Zero(kF);
  for (uint32_t i = 0; i < kVectors; ++i) {
    x[i] = hn::LoadU(kF, in + i * kN);
    most = hn::Max(most, hn::Abs(x[i]));
  }
  const float scale =
      hn::GetLane(hn::MaxOfLanes(kF, most)) * (1.0f / static_cast<float>(most_code));
  // If a scale is too small to have an inverse, its values are practically zero.
  const VF inverse = hn::Set(kF, scale > 1e-37f ? 1.0f / scale : 0.0f);
  for (uint32_t i = 0; i < kVectors; ++i) {
    out->values[i] =
        hn::Max(hn::Min(hn::NearestInt(hn::Mul(x[i], inverse)), hn::Set(kI, most_code)),
                hn::Set(kI, -most_code));
  }
  VI low = out->values[0];
  VI high = out->values[kVectors / 2];
  for (uint32_t i = 1; i < kVectors / 2; ++i) {
    low = hn::Add(low, out->values[i]);
    high = hn::Add(high, out->values[kVectors / 2 + i]);
  }
  int32_t sum[3] = {hn::GetLane(hn::SumOfLanes(kI, low)), hn::GetLane(hn::SumOfLanes(kI, high)), 0};
  sum[kWhole] = sum[0] + sum[1];
  out->sums.scale = scale;
  for (uint32_t part = 0; part < 3; ++part) {
    out->sums.scaled[part] = scale * static_cast<float>(sum[part]);
    out->sums.minus_sum[part] = -sum[part];
  }
}

HWY_INLINE void storePairs(const Codes& codes, int16_t* out) {
  const hn::Repartition<uint64_t, DF> k64;
  for (uint32_t i = 0; i < kUnit / kN; i += 2) {
    VU pairs[2];
    for (uint32_t k = 0; k < 2; ++k) {
      const VU code = hn::BitCast(kU, codes.values[i + k]);
      pairs[k] =
          hn::Or(hn::And(code, hn::Set(kU, 0xffffu)), hn::ShiftLeft<16>(hn::Shuffle1032(code)));
    }
    // The lower 64 bits of each 128 hold the pairs of four values.
    const auto both = hn::ConcatEven(k64, hn::BitCast(k64, pairs[1]), hn::BitCast(k64, pairs[0]));
    hn::StoreU(hn::BitCast(kI16, both), kI16, out + i * kN);
  }
}

HWY_INLINE void storePlanes(const Codes& codes, PlaneUnit* out) {
  const hn::Rebind<uint8_t, DF> bytes;
  for (uint32_t i = 0; i < kUnit / kN; ++i) {
    const VI code = codes.values[i];
    const VI high = hn::ShiftRight<8>(hn::Add(code, hn::Set(kI, 128)));  // low is signed, too
    const VU byte = hn::Set(kU, 0xffu);
    hn::StoreU(hn::TruncateTo(bytes, hn::And(hn::BitCast(kU, high), byte)), bytes,
               reinterpret_cast<uint8_t*>(out->high) + i * kN);
    hn::StoreU(hn::TruncateTo(bytes, hn::And(hn::BitCast(kU, code), byte)), bytes,
               reinterpret_cast<uint8_t*>(out->low) + i * kN);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
