// Vectors of a target: helpers shared by the kernels, and values stored in formats with fewer bits. Compiled once per
// target.
#if defined(ORIEL_CPU_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_VECTORS_INL_H_
#undef ORIEL_CPU_VECTORS_INL_H_
#else
#define ORIEL_CPU_VECTORS_INL_H_
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "base/half.h"
#include "kv/quantise.h"

#if HWY_TARGET == HWY_AVX3
// All relevant processors have this, too; simd.cpp checks it.
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512vnni"
#endif

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DU = hn::RebindToUnsigned<DF>;
using DI = hn::RebindToSigned<DF>;
using DI16 = hn::Repartition<int16_t, DF>;
using DU16 = hn::Repartition<uint16_t, DF>;
using DU8 = hn::Repartition<uint8_t, DF>;
using VF = hn::Vec<DF>;
using VU = hn::Vec<DU>;
using VI = hn::Vec<DI>;
using VI16 = hn::Vec<DI16>;

constexpr DF kF{};
constexpr DU kU{};
constexpr DI kI{};
constexpr DI16 kI16{};
constexpr DU16 kU16{};
/// Lanes of a vector of floats: 4, 8 or 16.
constexpr uint32_t kN = static_cast<uint32_t>(hn::MaxLanes(DF()));
static_assert(kN == 4 || kN == 8 || kN == 16, "groups of rows are made for these");

#if HWY_TARGET == HWY_WASM
/// Converts halves in the lower bits of words (upper bits 0) to floats. WebAssembly lacks such an instruction, and
/// Highway's version takes twice as many. A half's exponent and mantissa, moved to a float's place, are 2^112 times too
/// small, even for subnormal numbers. Infinity and NaN stay as such.
HWY_INLINE VF halvesOf(VU words) {
  const VU size = hn::And(words, hn::Set(kU, 0x7fffu));
  const VF finite = hn::Mul(hn::BitCast(kF, hn::ShiftLeft<13>(size)), hn::Set(kF, 0x1p112f));
  const VU beyond =
      hn::And(hn::VecFromMask(kU, hn::Gt(size, hn::Set(kU, 0x7bffu))), hn::Set(kU, 0x7f800000u));
  const VU sign = hn::ShiftLeft<16>(hn::Sub(words, size));
  return hn::BitCast(kF, hn::Or(hn::Or(hn::BitCast(kU, finite), beyond), sign));
}
#endif

/// kN halves from memory as floats.
HWY_INLINE VF loadHalves(const uint16_t* halves) {
  const hn::Rebind<uint16_t, DF> bits;
#if HWY_TARGET == HWY_WASM
  return halvesOf(hn::PromoteTo(kU, hn::LoadU(bits, halves)));
#else
  const hn::Rebind<hwy::float16_t, DF> half;
  return hn::PromoteTo(kF, hn::BitCast(half, hn::LoadU(bits, halves)));
#endif
}

/// kN values, or the first `count` followed by zeros.
HWY_INLINE VF loadSome(const float* values, uint32_t count) {
  if (HWY_LIKELY(count >= kN)) {
    return hn::LoadU(kF, values);
  }
  HWY_ALIGN float lanes[kN] = {};
  std::copy(values, values + count, lanes);
  return hn::Load(kF, lanes);
}
HWY_INLINE void storeSome(VF v, uint32_t count, float* values) {
  if (HWY_LIKELY(count >= kN)) {
    return hn::StoreU(v, kF, values);
  }
  HWY_ALIGN float lanes[kN];
  hn::Store(v, kF, lanes);
  std::copy(lanes, lanes + count, values);
}

/// The lower or upper half of each word as a float.
#if HWY_TARGET == HWY_WASM
HWY_INLINE VF lowHalves(VU words) { return halvesOf(hn::And(words, hn::Set(kU, 0xffffu))); }
HWY_INLINE VF highHalves(VU words) { return halvesOf(hn::ShiftRight<16>(words)); }
#else
HWY_INLINE VF lowHalves(VU words) {
  const hn::Rebind<hwy::float16_t, DF> half;
  const hn::Rebind<uint16_t, DF> bits;
  return hn::PromoteTo(
      kF, hn::BitCast(half, hn::TruncateTo(bits, hn::And(words, hn::Set(kU, 0xffffu)))));
}
HWY_INLINE VF highHalves(VU words) {
  const hn::Rebind<hwy::float16_t, DF> half;
  const hn::Rebind<uint16_t, DF> bits;
  return hn::PromoteTo(kF, hn::BitCast(half, hn::TruncateTo(bits, hn::ShiftRight<16>(words))));
}
#endif

/// e^x for x <= 88, to 2 units in the last place; far below -87 it is 0.
/// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by its Taylor series to r^7.
HWY_INLINE VF expOf(VF x) {
#if HWY_TARGET == HWY_AVX3
  x = hn::Max(hn::Set(kF, -110.0f), x);  // keeps NaN
  const VF nf = hn::Round(hn::Mul(x, hn::Set(kF, 1.44269504089f)));
#else
  const VI n = hn::NearestInt(hn::Mul(x, hn::Set(kF, 1.44269504089f)));
  const VF nf = hn::ConvertTo(kF, n);
#endif
  VF r = hn::NegMulAdd(nf, hn::Set(kF, 0.693145751953125f), x);
  r = hn::NegMulAdd(nf, hn::Set(kF, 1.42860682030941723212e-6f), r);
  VF p = hn::Set(kF, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(kF, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(kF, 1.0f));
#if HWY_TARGET == HWY_AVX3
  return VF{_mm512_scalef_ps(p.raw, nf.raw)};
#else
  const VF power = hn::BitCast(kF, hn::ShiftLeft<23>(hn::Add(n, hn::Set(kI, 127))));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kF, -87.0f)), hn::Mul(p, power));
#endif
}

/// tanh x, to a few units in the last place: 1 - 2 / (e^2|x| + 1) with the sign of x, and near 0, where that
/// would cancel, the first terms of Lambert's continued fraction.
HWY_INLINE VF tanhOf(VF x) {
  const VF one = hn::Set(kF, 1.0f);
  const VF size = hn::Abs(x);
  const VF e = expOf(hn::Min(hn::Add(size, size), hn::Set(kF, 40.0f)));
  const VF far = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(kF, 2.0f), hn::Add(e, one))), x);
  const VF z = hn::Mul(x, x);
  VF over = hn::Add(z, hn::Set(kF, 378.0f));
  over = hn::MulAdd(over, z, hn::Set(kF, 17325.0f));
  over = hn::MulAdd(over, z, hn::Set(kF, 135135.0f));
  VF under = hn::MulAdd(hn::Set(kF, 28.0f), z, hn::Set(kF, 3150.0f));
  under = hn::MulAdd(under, z, hn::Set(kF, 62370.0f));
  under = hn::MulAdd(under, z, hn::Set(kF, 135135.0f));
  const VF near = hn::Mul(x, hn::Div(over, under));
  return hn::IfThenElse(hn::Lt(size, hn::Set(kF, 0.625f)), near, far);
}

/// 1 + e^-x. The exponential would overflow beyond 87; dividing by the result there gives 0 to within 1e-36.
HWY_INLINE VF onePlusExpOfMinus(VF x) {
  return hn::Add(hn::Set(kF, 1.0f), expOf(hn::Min(hn::Neg(x), hn::Set(kF, 87.0f))));
}
HWY_INLINE VF sigmoidOf(VF x) { return hn::Div(hn::Set(kF, 1.0f), onePlusExpOfMinus(x)); }
HWY_INLINE VF siluOf(VF x) { return hn::Div(x, onePlusExpOfMinus(x)); }

// Conversion of values to formats with fewer bits.

/// `n` values as half floats, two to a word.
inline void storeHalves(const float* values, uint32_t n, uint32_t* words) {
  uint16_t* out = reinterpret_cast<uint16_t*>(words);
  uint32_t i = 0;
// SSE4 and WebAssembly lack the instruction, and Highway's version truncates instead of rounding.
#if HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_WASM
  const hn::Rebind<hwy::float16_t, DF> half;
  const hn::Rebind<uint16_t, DF> bits;
  for (; i + kN <= n; i += kN) {
    hn::StoreU(hn::BitCast(bits, hn::DemoteTo(half, hn::LoadU(kF, values + i))), bits, out + i);
  }
#endif
  for (; i < n; ++i) {
    out[i] = floatToHalf(values[i]);
  }
}

/// Like quantiseGroup() of kv/quantise.h, for int8 and a whole group.
inline uint16_t quantiseInt8Group(const float* values, int8_t* codes) {
  VF most = hn::Zero(kF);
  for (uint32_t i = 0; i < kKvGroup; i += kN) {
    most = hn::Max(most, hn::Abs(hn::LoadU(kF, values + i)));
  }
  const uint16_t bits = floatToHalf(hn::GetLane(hn::MaxOfLanes(kF, most)) * (1.0f / 127.0f));
  const float scale = halfToFloat(bits);
  const VF inverse = hn::Set(kF, scale != 0 ? 1.0f / scale : 0.0f);
  const VF limit = hn::Set(kF, 127.0f);
  const hn::Rebind<int8_t, DF> k8;
  for (uint32_t i = 0; i < kKvGroup; i += kN) {
    const VF scaled = hn::Mul(hn::LoadU(kF, values + i), inverse);
    const VF clamped = hn::Min(hn::Max(scaled, hn::Neg(limit)), limit);
    hn::StoreU(hn::DemoteTo(k8, hn::NearestInt(clamped)), k8, codes + i);
  }
  return bits;
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
