// Lane order of a slot's values, for attention of one token. Compiled once per target.
#if defined(ORIEL_CPU_ATTENTION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_ATTENTION_VALUES_INL_H_
#undef ORIEL_CPU_ATTENTION_VALUES_INL_H_
#else
#define ORIEL_CPU_ATTENTION_VALUES_INL_H_
#endif

#include "cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

// With 16 lanes, int4 codes are read in a special order, within a group or within the last 16.
constexpr uint32_t laneOf(uint32_t value, uint32_t count) {
  return count == kKvGroup ? value % 8 * 4 + value / 8 : value < 8 ? 2 * value : 2 * value - 15;
}

/// Vectors of one group that are loaded together.
constexpr uint32_t kGroupVectors = kKvGroup / kN;

/// Values c .. c + kVectors * kN - 1 of a slot, within one group. Low-bit values come without their scale, int4 in
/// lane order.
template <KvFormat kFormat, uint32_t kVectors>
HWY_INLINE void valuesAt(const uint8_t* slot, uint32_t c, VF (&values)[kVectors]) {
#if HWY_MAX_BYTES == 64
  if (kFormat == KvFormat::kInt4) {
    // A table look-up uses the lowest four bits.
    if (kVectors == kGroupVectors) {
      // Block b of the first vector holds codes b of all four words, of the second codes 4 + b.
      HWY_ALIGN static constexpr uint32_t kShift[kN] = {0, 0, 0, 0, 4,  4,  4,  4,
                                                        8, 8, 8, 8, 12, 12, 12, 12};
      const VU shift = hn::Load(kU, kShift);
      const VU codes = hn::BitCast(kU, hn::LoadDup128(DU8(), slot + c / 2));
      for (uint32_t i = 0; i < kVectors; ++i) {
        values[i] = levelsOf(hn::Shr(codes, hn::Add(shift, hn::Set(kU, 16 * i))));
      }
      return;
    }
    // Even lanes hold the first eight codes, odd ones the others.
    HWY_ALIGN static constexpr uint32_t kShift[kN] = {0,  0,  4,  4,  8,  8,  12, 12,
                                                      16, 16, 20, 20, 24, 24, 28, 28};
    const hn::Repartition<uint64_t, DF> k64;
    for (uint32_t i = 0; i < kVectors; ++i) {
      uint64_t codes;
      hwy::CopyBytes<8>(slot + (c + i * kN) / 2, &codes);
      values[i] = levelsOf(hn::Shr(hn::BitCast(kU, hn::Set(k64, codes)), hn::Load(kU, kShift)));
    }
    return;
  }
#endif
  for (uint32_t i = 0; i < kVectors; ++i) {
    const uint32_t first = c + i * kN;
    values[i] = kFormat == KvFormat::kF16
                    ? loadHalves(reinterpret_cast<const uint16_t*>(slot) + first)
                    : codeValues<kFormat>(slot + (kFormat == KvFormat::kInt8 ? first : first / 2));
  }
}

/// Converts between value order and lane order.
template <bool kToLanes, uint32_t kCount>
HWY_INLINE void reorderGroup(float* values) {
  float old[kCount];
  std::copy(values, values + kCount, old);
  for (uint32_t i = 0; i < kCount; ++i) {
    const uint32_t lane = laneOf(i, kCount);
    values[kToLanes ? lane : i] = old[kToLanes ? i : lane];
  }
}
template <bool kToLanes>
void reorder(uint32_t head_dim, float* values) {
  if (kN == 16) {
    uint32_t c = 0;
    for (; c + kKvGroup <= head_dim; c += kKvGroup) {
      reorderGroup<kToLanes, kKvGroup>(values + c);
    }
    if (c < head_dim) {
      reorderGroup<kToLanes, 16>(values + c);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
