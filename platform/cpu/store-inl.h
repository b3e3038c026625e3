// Conversion of values to formats with fewer bits. Compiled once per target.
#if defined(ORIEL_CPU_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_STORE_INL_H_
#undef ORIEL_CPU_STORE_INL_H_
#else
#define ORIEL_CPU_STORE_INL_H_
#endif

#include "base/half.h"
#include "cpu/vectors-inl.h"
#include "kv/quantise.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

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
