// Reading the cache and the softmax of scores, for one token and for chunks.
// Compiled once per target.
#if defined(ORIEL_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_ATTENTION_INL_H_
#undef ORIEL_CPU_ATTENTION_INL_H_
#else
#define ORIEL_CPU_ATTENTION_INL_H_
#endif

#include <algorithm>

#include "base/half.h"
#include "cpu/kernels.h"
#include "cpu/vectors-inl.h"
#include "kv/quantise.h"
#include "kv/window.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

constexpr uint32_t kMostSlots = 64;  // per block of a chunk
constexpr float kLeast = -3.0e38f;   // below any score
/// Vectors of a row that are accumulated at a time, and queries that share loaded vectors. Limited
/// by the number of registers.
constexpr bool kManyRegisters = HWY_MAX_BYTES == 64 || HWY_ARCH_ARM_A64;
constexpr uint32_t kWide = kManyRegisters ? 4 : 2;

inline const View& viewOf(const AttentionTask& task, uint32_t token) {
  return task.step.view(token, task.push.view);
}

/// True if both tokens belong to the step and share a KV cache.
inline bool together(const AttentionTask& task, uint32_t token, uint32_t other) {
  return other < task.n_tokens && task.step.token(token).base == task.step.token(other).base;
}

/// Contiguous slots of one head, of keys or values.
struct Slots {
  KvFormat format;
  const uint32_t* words;
  const uint16_t* scales;  // null: format without scales
};

/// From slot `first` of a head on, in the cache of `view`.
inline Slots slotsOf(const AttentionPush& p, const View& view, KvFormat format,
                     const uint32_t* side, uint32_t head, bool sinks, uint32_t first) {
  const CacheShape shape = sessionShape(p, p.n_kv_heads, p.head_dim, view);
  if (sinks) {
    return {KvFormat::kF16,
            side + shape.sinkRow(head, first) * kvValueWords(KvFormat::kF16, p.head_dim), nullptr};
  }
  const SideLayout layout = sideLayout(format, shape);
  const uint64_t slot = shape.ringRow(head, first);
  const auto* scales = reinterpret_cast<const uint16_t*>(side + layout.scales_word);
  return {format, side + layout.ring_word + slot * kvValueWords(format, p.head_dim),
          format == KvFormat::kF16 ? nullptr : scales + slot * kvGroups(p.head_dim)};
}

// Values of int4 codes, before their scale.
HWY_INLINE VF int4Levels(VI codes) {
  const VF t = hn::Sub(hn::ConvertTo(kF, codes), hn::Set(kF, 7.875f));
  return hn::MulAdd(hn::Mul(hn::Mul(t, t), t), hn::Set(kF, 1.0f / 128.0f), t);
}

/// Contiguous half floats.
inline void unpackHalves(const uint16_t* halves, uint32_t count, float* out) {
  uint32_t i = 0;
  for (; i + kN <= count; i += kN) {
    hn::StoreU(loadHalves(halves + i), kF, out + i);
  }
  for (; i < count; ++i) {
    out[i] = halfToFloat(halves[i]);
  }
}

#if HWY_MAX_BYTES == 64
/// The levels of int4 codes, in the lowest four bits of each lane.
HWY_INLINE VF levelsOf(VU codes) {
  HWY_ALIGN static constexpr float kLevels[kInt4Levels] = {
      int4Level(0),  int4Level(1),  int4Level(2),  int4Level(3), int4Level(4),  int4Level(5),
      int4Level(6),  int4Level(7),  int4Level(8),  int4Level(9), int4Level(10), int4Level(11),
      int4Level(12), int4Level(13), int4Level(14), int4Level(15)};
  return hn::TableLookupLanes(hn::Load(kF, kLevels),
                              hn::IndicesFromVec(kF, hn::BitCast(kI, codes)));
}
#endif

/// kN codes of a low-bit format from `bytes` on, without their scale.
template <KvFormat kFormat>
HWY_INLINE VF codeValues(const uint8_t* bytes) {
  if (kFormat == KvFormat::kInt8) {
    const hn::Rebind<int8_t, DF> k8;
    return hn::ConvertTo(kF,
                         hn::PromoteTo(kI, hn::LoadU(k8, reinterpret_cast<const int8_t*>(bytes))));
  }
  // A byte holds two codes: spread bytes to pairs of bytes, then those to lanes.
  const hn::Rebind<uint8_t, hn::Half<DF>> k8;
  const hn::Rebind<uint16_t, hn::Half<DF>> k16;
  const auto pairs = hn::PromoteTo(k16, hn::LoadU(k8, bytes));
  const auto spread = hn::And(hn::Or(pairs, hn::ShiftLeft<4>(pairs)), hn::Set(k16, 0x0f0f));
  const hn::Rebind<uint8_t, DF> codes8;
  const VI codes = hn::PromoteTo(kI, hn::BitCast(codes8, spread));
#if HWY_MAX_BYTES == 64
  return levelsOf(hn::BitCast(kU, codes));
#else
  return int4Levels(codes);
#endif
}

/// Lane r of tile[c] becomes lane c of tile[r].
HWY_INLINE void transpose(VF (&tile)[kN]) {
  const hn::Repartition<double, DF> k64;
  for (uint32_t g = 0; g < kN; g += 4) {  // 4 by 4 in blocks of 128 bits
    const auto ab = hn::BitCast(k64, hn::InterleaveLower(kF, tile[g], tile[g + 1]));
    const auto cd = hn::BitCast(k64, hn::InterleaveLower(kF, tile[g + 2], tile[g + 3]));
    const auto ab2 = hn::BitCast(k64, hn::InterleaveUpper(kF, tile[g], tile[g + 1]));
    const auto cd2 = hn::BitCast(k64, hn::InterleaveUpper(kF, tile[g + 2], tile[g + 3]));
    tile[g] = hn::BitCast(kF, hn::InterleaveLower(k64, ab, cd));
    tile[g + 1] = hn::BitCast(kF, hn::InterleaveUpper(k64, ab, cd));
    tile[g + 2] = hn::BitCast(kF, hn::InterleaveLower(k64, ab2, cd2));
    tile[g + 3] = hn::BitCast(kF, hn::InterleaveUpper(k64, ab2, cd2));
  }
#if HWY_MAX_BYTES == 64
  for (uint32_t w = 0; w < 4; ++w) {
    const VF lower02 = hn::ConcatLowerLower(kF, tile[8 + w], tile[w]);
    const VF lower13 = hn::ConcatLowerLower(kF, tile[12 + w], tile[4 + w]);
    const VF upper02 = hn::ConcatUpperUpper(kF, tile[8 + w], tile[w]);
    const VF upper13 = hn::ConcatUpperUpper(kF, tile[12 + w], tile[4 + w]);
    tile[w] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(lower13), lower02);
    tile[4 + w] = hn::OddEvenBlocks(lower13, hn::SwapAdjacentBlocks(lower02));
    tile[8 + w] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(upper13), upper02);
    tile[12 + w] = hn::OddEvenBlocks(upper13, hn::SwapAdjacentBlocks(upper02));
  }
#elif HWY_MAX_BYTES == 32
  for (uint32_t w = 0; w < 4; ++w) {
    const VF lower = tile[w];
    tile[w] = hn::ConcatLowerLower(kF, tile[4 + w], lower);
    tile[4 + w] = hn::ConcatUpperUpper(kF, tile[4 + w], lower);
  }
#endif
}

/// Replaces scores of `count` slots, in whole vectors, by cap * tanh(score / cap).
inline void capScores(float cap, uint32_t count, float* scores) {
  const VF cap_v = hn::Set(kF, cap);
  const VF inverse = hn::Set(kF, 1.0f / cap);
  for (uint32_t s = 0; s < count; s += kN) {
    const VF score = hn::Load(kF, scores + s);
    hn::Store(hn::Mul(cap_v, tanhOf(hn::Mul(score, inverse))), kF, scores + s);
  }
}

/// Weights are relative to `most`. A score may exceed it by kSlack, so that it rises rarely.
constexpr float kSlack = 8.0f;  // weights up to 3000

/// Raises `most` to the largest score if scores exceed it by more than kSlack. Scales down the
/// gathered values and the sums of weights to match, lane by lane.
inline HWY_NOINLINE void raiseMost(VF scores, uint32_t stride, float* most, float* sums,
                                   float* gathered) {
  if (HWY_UNLIKELY(
          !hn::AllFalse(kF, hn::Gt(hn::Sub(scores, hn::Set(kF, kSlack)), hn::Set(kF, *most))))) {
    const VF largest = hn::MaxOfLanes(kF, scores);
    const VF shrink = expOf(hn::Sub(hn::Set(kF, *most), largest));
    hn::Store(hn::Mul(hn::Load(kF, sums), shrink), kF, sums);
    for (uint32_t c = 0; c < stride; c += kN) {
      hn::Store(hn::Mul(hn::Load(kF, gathered + c), shrink), kF, gathered + c);
    }
    *most = hn::GetLane(largest);
  }
}

/// The scores of slots s .. s + kN - 1, with those outside from .. to - 1 replaced by kLeast.
HWY_INLINE VF seenScores(VF scores, uint32_t s, uint32_t from, uint32_t to) {
  const VI slot = hn::Iota(kI, static_cast<int32_t>(s));
  const auto seen = hn::And(hn::Gt(slot, hn::Set(kI, static_cast<int32_t>(from) - 1)),
                            hn::Lt(slot, hn::Set(kI, static_cast<int32_t>(to))));
  return hn::IfThenElse(hn::RebindMask(kF, seen), scores, hn::Set(kF, kLeast));
}

/// Turns the scores of slots from .. to - 1 of a block into weights. The other slots, up to a whole
/// vector, get the weight 0.
inline void soften(uint32_t from, uint32_t to, uint32_t stride, float* most, float* scores,
                   float* sums, float* gathered) {
  const uint32_t end = (to + kN - 1) / kN * kN;
  VF most_v = hn::Set(kF, kLeast);
  for (uint32_t s = 0; s < end; s += kN) {
    VF value = hn::Load(kF, scores + s);
    if (s < from || s + kN > to) {
      value = seenScores(value, s, from, to);
      hn::Store(value, kF, scores + s);
    }
    most_v = hn::Max(most_v, value);
  }
  raiseMost(most_v, stride, most, sums, gathered);
  VF sum = hn::Load(kF, sums);
  const VF largest = hn::Set(kF, *most);
  for (uint32_t s = 0; s < end; s += kN) {
    const VF weight = expOf(hn::Sub(hn::Load(kF, scores + s), largest));
    hn::Store(weight, kF, scores + s);
    sum = hn::Add(sum, weight);
  }
  hn::Store(sum, kF, sums);
}

/// Neighbouring splits that are processed as one.
struct Splits {
  uint32_t first;
  uint32_t count;
};

/// Calls attend(sinks, slot, order, count) for contiguous blocks of at most `block_slots` slots: the
/// splits' share of `n_sinks` sinks, then of `n_ring` ring slots starting at `ring`. `order` counts
/// from the first sink or the first ring slot. Ring blocks end at the same slots in every view. Only
/// the first block may start at another slot, if tokens that share a block see more; the order of
/// its additions then differs.
template <class Attend>
HWY_INLINE void forEachBlock(const AttentionPush& p, const Splits& splits, uint32_t n_sinks,
                             const View& ring, uint32_t n_ring, uint32_t block_slots,
                             const Attend& attend) {
  const uint64_t begin = static_cast<uint64_t>(splits.first) * p.split_slots;
  const uint64_t end =
      p.splits == 1 ? UINT64_MAX : begin + static_cast<uint64_t>(splits.count) * p.split_slots;
  const auto share = [&](uint64_t first_slot, uint32_t slots, uint32_t* from, uint32_t* to) {
    const uint64_t last = first_slot + slots;
    *from = static_cast<uint32_t>(std::clamp(begin, first_slot, last) - first_slot);
    *to = static_cast<uint32_t>(std::clamp(end, first_slot, last) - first_slot);
  };
  uint32_t from = 0;
  uint32_t to = 0;
  share(0, n_sinks, &from, &to);
  for (uint32_t s = from; s < to; s += block_slots) {
    attend(true, s, s, std::min(block_slots, to - s));
  }
  share(n_sinks, n_ring, &from, &to);
  for (uint32_t s = from; s < to;) {
    const uint32_t slot = static_cast<uint32_t>((uint64_t{ring.begin} + s) % ring.ring);
    const uint32_t count = std::min({block_slots - slot % block_slots, to - s, ring.ring - slot});
    attend(false, slot, s, count);
    s += count;
  }
}

// Writes the result of a query: normalised, or as the share of the first split. The other splits
// have no share.
inline void finish(const AttentionTask& task, uint32_t token, uint32_t head, const Splits& splits,
                   float most, const float* sums, const float* gathered) {
  const AttentionPush& p = task.push;
  float sum = hn::GetLane(hn::SumOfLanes(kF, hn::Load(kF, sums)));
  if (task.more_scores != nullptr && splits.first == 0) {
    // If the score is far above all others, all weights are close to 0.
    sum +=
        hn::GetLane(expOf(hn::Min(hn::Set(kF, task.more_scores[head] - most), hn::Set(kF, 88.0f))));
  }
  if (p.splits == 1) {
    float* out = task.out + static_cast<uint64_t>(token) * p.out_stride + head * p.head_dim;
    const float inverse = 1.0f / sum;
    for (uint32_t c = 0; c < p.head_dim; ++c) {
      out[c] = gathered[c] * inverse;
    }
    return;
  }
  for (uint32_t i = 0; i < splits.count; ++i) {
    float* out = task.out +
                 ((static_cast<uint64_t>(token) * p.n_heads + head) * p.splits + splits.first + i) *
                     (p.head_dim + kPartialExtra);
    if (i == 0 && sum != 0) {  // the merge does not read values with a sum of 0
      std::copy(gathered, gathered + p.head_dim, out);
    }
    out[p.head_dim] = i == 0 ? most : kLeast;
    out[p.head_dim + 1] = i == 0 ? sum : 0.0f;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
