// Products of bytes with activations rounded to 16 bits (rows.h). Compiled once per target.
#if defined(ORIEL_CPU_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_INTEGERS_INL_H_
#undef ORIEL_CPU_INTEGERS_INL_H_
#else
#define ORIEL_CPU_INTEGERS_INL_H_
#endif

#include "cpu/rows.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel {
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

/// sum0 + sum1 += w . x, in pairs; RearrangeToOddPlusEven brings both together.
HWY_INLINE VI addProducts(VI16 w, VI16 x, VI sum0, VI& sum1) {
#if HWY_TARGET == HWY_AVX3
  (void)sum1;
  return VI{_mm512_dpwssd_epi32(sum0.raw, w.raw, x.raw)};
#else
  return hn::ReorderWidenMulAccumulate(kI, w, x, sum0, sum1);
#endif
}

/// Integer dot products of kN rows; two, so that additions do not wait for each other.
struct Sums {
  VI low0, low1, high0, high1;

  // Constructors that compilers make up lack the target's instructions.
  HWY_INLINE Sums() {}
  HWY_INLINE void clear() { low0 = low1 = high0 = high1 = hn::Zero(kI); }

  HWY_INLINE void addLow(VI16 w, VI16 x) {
    low0 = addProducts(w, x, low0, low1);
  }
  HWY_INLINE void addHigh(VI16 w, VI16 x) {
    high0 = addProducts(w, x, high0, high1);
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

/// kUnit floats to pairs of integers.
HWY_INLINE IntUnitSums quantiseUnit(const float* in, int16_t* out) {
  const hn::Repartition<uint64_t, DF> k64;
  constexpr uint32_t kVectors = kUnit / kN;
  VF x[kVectors];
  VF most = hn::Zero(kF);
  for (uint32_t i = 0; i < kVectors; ++i) {
    x[i] = hn::LoadU(kF, in + i * kN);
    most = hn::Max(most, hn::Abs(x[i]));
  }
  IntUnitSums sums;
  sums.scale = hn::GetLane(hn::MaxOfLanes(kF, most)) * (1.0f / 32767.0f);
  // A scale too small to have an inverse belongs to values that are as good as zero.
  const VF inverse = hn::Set(kF, sums.scale > 1e-37f ? 1.0f / sums.scale : 0.0f);
  VI codes[kVectors];
  for (uint32_t i = 0; i < kVectors; ++i) {
    codes[i] = hn::Max(hn::Min(hn::NearestInt(hn::Mul(x[i], inverse)), hn::Set(kI, 32767)),
                       hn::Set(kI, -32767));
  }
  VI low = codes[0];
  VI high = codes[kVectors / 2];
  for (uint32_t i = 1; i < kVectors / 2; ++i) {
    low = hn::Add(low, codes[i]);
    high = hn::Add(high, codes[kVectors / 2 + i]);
  }
  const int32_t low_sum = hn::GetLane(hn::SumOfLanes(kI, low));
  const int32_t high_sum = hn::GetLane(hn::SumOfLanes(kI, high));
  sums.scaled = sums.scale * static_cast<float>(low_sum + high_sum);
  sums.scaled_low = sums.scale * static_cast<float>(low_sum);
  sums.scaled_high = sums.scale * static_cast<float>(high_sum);
  for (uint32_t i = 0; i < kVectors; i += 2) {
    VU pairs[2];
    for (uint32_t k = 0; k < 2; ++k) {
      const VU code = hn::BitCast(kU, codes[i + k]);
      pairs[k] = hn::Or(hn::And(code, hn::Set(kU, 0xffffu)),
                        hn::ShiftLeft<16>(hn::Shuffle1032(code)));
    }
    // The lower 64 bits of each 128 hold the pairs of four values.
    const auto both = hn::ConcatEven(k64, hn::BitCast(k64, pairs[1]), hn::BitCast(k64, pairs[0]));
    hn::StoreU(hn::BitCast(kI16, both), kI16, out + i * kN);
  }
  return sums;
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#endif  // per target
