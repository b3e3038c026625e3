#include "cpu/attention.h"

#include <algorithm>

#include "base/half.h"
#include "kv/quantise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel {
namespace HWY_NAMESPACE {

constexpr uint32_t kMostSlots = 64;       // of a block
constexpr uint32_t kBlockFloats = 4096;   // of keys or values unpacked: well inside a first-level cache
constexpr float kLeast = -3.0e38f;        // below any score
static_assert(kBlockFloats / kMaxHeadDim >= 4, "scores are made four at a time");

/// What a token sees.
struct View {
  uint32_t n_sinks;
  uint32_t ring_begin;
  uint32_t n_ring;
};

View viewOf(const AttentionTask& task, uint32_t token) {
  const TokenStep& step = task.tokens[token];
  return task.push.local != 0 ? View{0, step.local_begin, step.local_n_ring}
                              : View{step.n_sinks, step.ring_begin, step.n_ring};
}

/// One query head of one token, and what it has gathered so far.
struct Query {
  uint32_t n_sinks = 0;
  uint32_t ring_from = 0;  // its window, counted from the first slot that any query of the task sees
  uint32_t ring_to = 0;
  uint32_t block_from = 0;  // of the block at hand
  uint32_t block_to = 0;
  float most = kLeast;
};

/// Slots of one head and side that lie one after another.
struct Slots {
  KvFormat format;
  const uint32_t* words;
  const uint16_t* scales;  // low-bit formats only
};

struct Scratch {
  Query queries[kMostQueries];
  // Rows of `stride` floats: close together, or they would push each other out of the cache.
  HWY_ALIGN float rotated_rows[2 * kMostQueries * kMaxHeadDim];
  HWY_ALIGN float gathered_rows[kMostQueries * kMaxHeadDim];
  HWY_ALIGN float block[kBlockFloats];
  HWY_ALIGN float weights[kMostQueries][kMostSlots];
  HWY_ALIGN float sums[kMostQueries][kN];  // of weights, lane by lane
  uint32_t stride;

  // Query q for window keys (0) or for sinks (1).
  float* rotated(uint32_t which, uint32_t q) {
    return rotated_rows + (which * kMostQueries + q) * stride;
  }
  float* gathered(uint32_t q) { return gathered_rows + q * stride; }
};

Slots slotsOf(const AttentionPush& p, KvFormat format, const uint32_t* side, uint32_t head,
              bool sinks, uint32_t first) {
  if (sinks) {
    return {KvFormat::kF16,
            side + (static_cast<uint64_t>(head) * p.sinks + first) *
                       kvValueWords(KvFormat::kF16, p.head_dim),
            nullptr};
  }
  const SideLayout layout = sideLayout(format, {p.n_kv_heads, p.head_dim, p.sinks, 0, p.ring});
  const uint64_t slot = static_cast<uint64_t>(head) * p.ring + first;
  return {format, side + layout.ring_word + slot * kvValueWords(format, p.head_dim),
          reinterpret_cast<const uint16_t*>(side + layout.scales_word) +
              slot * kvGroups(p.head_dim)};
}

// What int4 codes stand for, before their scale.
HWY_INLINE VF int4Levels(VI codes) {
  const VF t = hn::Sub(hn::ConvertTo(kF, codes), hn::Set(kF, 7.875f));
  return hn::MulAdd(hn::Mul(hn::Mul(t, t), t), hn::Set(kF, 1.0f / 128.0f), t);
}

/// Half floats that lie one after another.
void unpackHalves(const uint16_t* halves, uint32_t count, float* out) {
  uint32_t i = 0;
  for (; i + kN <= count; i += kN) {
    hn::StoreU(loadHalves(halves + i), kF, out + i);
  }
  for (; i < count; ++i) {
    out[i] = halfToFloat(halves[i]);
  }
}

/// kN codes of a low-bit format from `bytes` on, without their scale.
template <KvFormat kFormat>
HWY_INLINE VF codeValues(const uint8_t* bytes) {
  if (kFormat == KvFormat::kInt8) {
    const hn::Rebind<int8_t, DF> k8;
    return hn::ConvertTo(
        kF, hn::PromoteTo(kI, hn::LoadU(k8, reinterpret_cast<const int8_t*>(bytes))));
  }
  // A byte holds two codes: spread bytes to pairs of bytes, then those to lanes.
  const hn::Rebind<uint8_t, hn::Half<DF>> k8;
  const hn::Rebind<uint16_t, hn::Half<DF>> k16;
  const auto pairs = hn::PromoteTo(k16, hn::LoadU(k8, bytes));
  const auto spread = hn::And(hn::Or(pairs, hn::ShiftLeft<4>(pairs)), hn::Set(k16, 0x0f0f));
  const hn::Rebind<uint8_t, DF> codes8;
  const VI codes = hn::PromoteTo(kI, hn::BitCast(codes8, spread));
#if HWY_MAX_BYTES == 64
  HWY_ALIGN static constexpr float kLevels[kInt4Levels] = {
      int4Level(0), int4Level(1), int4Level(2),  int4Level(3),  int4Level(4),  int4Level(5),
      int4Level(6), int4Level(7), int4Level(8),  int4Level(9),  int4Level(10), int4Level(11),
      int4Level(12), int4Level(13), int4Level(14), int4Level(15)};
  return hn::TableLookupLanes(hn::Load(kF, kLevels), hn::IndicesFromVec(kF, codes));
#else
  return int4Levels(codes);
#endif
}

template <KvFormat kFormat>
void unpackLowBits(const Slots& slots, uint32_t count, uint32_t head_dim, uint32_t stride,
                   float* out) {
  const uint32_t words = kvValueWords(kFormat, head_dim);
  const uint32_t groups = kvGroups(head_dim);
  const uint32_t whole = head_dim / kN * kN;
  float scales[kMostSlots * kvGroups(kMaxHeadDim)];
  unpackHalves(slots.scales, count * groups, scales);
  for (uint32_t s = 0; s < count; ++s, out += stride) {
    const uint8_t* bytes =
        reinterpret_cast<const uint8_t*>(slots.words + static_cast<uint64_t>(s) * words);
    const float* scale = scales + s * groups;
    for (uint32_t c = 0; c < whole; c += kN) {
      const VF values = codeValues<kFormat>(bytes + (kFormat == KvFormat::kInt8 ? c : c / 2));
      hn::Store(hn::Mul(values, hn::Set(kF, scale[c / kKvGroup])), kF, out + c);
    }
    for (uint32_t c = whole; c < head_dim; ++c) {
      const uint32_t code = kFormat == KvFormat::kInt8
                                ? bytes[c]
                                : static_cast<uint32_t>(bytes[c / 2] >> (4 * (c % 2)) & 15);
      out[c] = scale[c / kKvGroup] * kvCodeValue(kFormat, code);
    }
    std::fill(out + head_dim, out + stride, 0.0f);
  }
}

/// `count` slots of head_dim values as floats, `stride` apart, padded with zeros to `stride`.
void unpackSlots(const Slots& slots, uint32_t count, uint32_t head_dim, uint32_t stride,
                 float* out) {
  switch (slots.format) {
    case KvFormat::kInt8:
      return unpackLowBits<KvFormat::kInt8>(slots, count, head_dim, stride, out);
    case KvFormat::kInt4:
      return unpackLowBits<KvFormat::kInt4>(slots, count, head_dim, stride, out);
    case KvFormat::kF16:
      break;
  }
  const uint16_t* halves = reinterpret_cast<const uint16_t*>(slots.words);
  for (uint32_t s = 0; s < count; ++s) {
    unpackHalves(halves + static_cast<uint64_t>(s) * head_dim, head_dim, out + s * stride);
    std::fill(out + s * stride + head_dim, out + (s + 1) * stride, 0.0f);
  }
}

/// The sums of the lanes of four vectors, as four floats.
HWY_INLINE void sumFour(VF a, VF b, VF c, VF d, float* out) {
  const VF ac = hn::Add(hn::InterleaveLower(kF, a, c), hn::InterleaveUpper(kF, a, c));
  const VF bd = hn::Add(hn::InterleaveLower(kF, b, d), hn::InterleaveUpper(kF, b, d));
  const VF sums = hn::Add(hn::InterleaveLower(kF, ac, bd), hn::InterleaveUpper(kF, ac, bd));
#if HWY_MAX_BYTES == 64
  const hn::Half<DF> half;
  const hn::Half<decltype(half)> quarter;
  const auto h = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, h), hn::UpperHalf(quarter, h)), quarter, out);
#elif HWY_MAX_BYTES == 32
  const hn::Half<DF> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)), half, out);
#else
  hn::StoreU(sums, kF, out);
#endif
}

/// Scores of kQueries queries with `count` slots (rounded up to fours).
template <uint32_t kQueries>
HWY_INLINE void score(const float* const* queries, const float* keys, uint32_t count,
                      uint32_t stride, float* const* scores) {
  for (uint32_t s = 0; s < count; s += 4) {
    VF sums[kQueries][4];
    for (uint32_t q = 0; q < kQueries; ++q) {
      for (uint32_t i = 0; i < 4; ++i) {
        sums[q][i] = hn::Zero(kF);
      }
    }
    for (uint32_t c = 0; c < stride; c += kN) {
      VF key[4];
      for (uint32_t i = 0; i < 4; ++i) {
        key[i] = hn::Load(kF, keys + (s + i) * stride + c);
      }
      for (uint32_t q = 0; q < kQueries; ++q) {
        const VF query = hn::Load(kF, queries[q] + c);
        for (uint32_t i = 0; i < 4; ++i) {
          sums[q][i] = hn::MulAdd(query, key[i], sums[q][i]);
        }
      }
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      sumFour(sums[q][0], sums[q][1], sums[q][2], sums[q][3], scores[q] + s);
    }
  }
}

/// gathered[q] += weights[q][slot] * values[slot], for slots first .. last - 1 and kWidth vectors from `c`.
template <uint32_t kQueries, uint32_t kWidth>
HWY_INLINE void gather(const float* const* weights, const float* values, uint32_t first,
                       uint32_t last, uint32_t stride, uint32_t c, float* const* gathered) {
  VF sums[kQueries][kWidth];
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t i = 0; i < kWidth; ++i) {
      sums[q][i] = hn::Load(kF, gathered[q] + c + i * kN);
    }
  }
  for (uint32_t s = first; s < last; ++s) {
    VF value[kWidth];
    for (uint32_t i = 0; i < kWidth; ++i) {
      value[i] = hn::Load(kF, values + s * stride + c + i * kN);
    }
    for (uint32_t q = 0; q < kQueries; ++q) {
      const VF weight = hn::Set(kF, weights[q][s]);
      for (uint32_t i = 0; i < kWidth; ++i) {
        sums[q][i] = hn::MulAdd(weight, value[i], sums[q][i]);
      }
    }
  }
  for (uint32_t q = 0; q < kQueries; ++q) {
    for (uint32_t i = 0; i < kWidth; ++i) {
      hn::Store(sums[q][i], kF, gathered[q] + c + i * kN);
    }
  }
}

/// Turns the scores of a block into weights relative to the largest score so far, and scales down what was
/// gathered under a smaller one. `sums` are the weights so far, lane by lane.
void soften(float scale, uint32_t stride, Query* query, float* scores, float* sums,
            float* gathered) {
  const uint32_t from = query->block_from;
  const uint32_t to = query->block_to;
  const uint32_t end = (to + kN - 1) / kN * kN;
  const VF scale_v = hn::Set(kF, scale);
  const VF old_most = hn::Set(kF, query->most);
  VF most_v = old_most;
  for (uint32_t s = 0; s < end; s += kN) {
    VF value = hn::Mul(hn::Load(kF, scores + s), scale_v);
    if (s < from || s + kN > to) {
      const VI slot = hn::Iota(kI, static_cast<int32_t>(s));
      const auto seen = hn::RebindMask(
          kF, hn::And(hn::Gt(slot, hn::Set(kI, static_cast<int32_t>(from) - 1)),
                      hn::Lt(slot, hn::Set(kI, static_cast<int32_t>(to)))));
      value = hn::IfThenElse(seen, value, hn::Set(kF, kLeast));
    }
    hn::Store(value, kF, scores + s);
    most_v = hn::Max(most_v, value);
  }
  VF sum = hn::Load(kF, sums);
  if (!hn::AllFalse(kF, hn::Gt(most_v, old_most))) {
    const VF largest = hn::MaxOfLanes(kF, most_v);
    const VF shrink = expOf(hn::Sub(old_most, largest));
    sum = hn::Mul(sum, shrink);
    for (uint32_t c = 0; c < stride; c += kN) {
      hn::Store(hn::Mul(hn::Load(kF, gathered + c), shrink), kF, gathered + c);
    }
    query->most = hn::GetLane(largest);
  }
  const VF largest = hn::Set(kF, query->most);
  for (uint32_t s = 0; s < end; s += kN) {
    const VF weight = expOf(hn::Sub(hn::Load(kF, scores + s), largest));
    hn::Store(weight, kF, scores + s);
    sum = hn::Add(sum, weight);
  }
  hn::Store(sum, kF, sums);
  std::fill(scores + end, scores + kMostSlots, 0.0f);  // others may see these slots
}

/// `count` <= kMostSlots slots for all queries, each of which sees block_from .. block_to - 1 of them.
void attendBlock(const AttentionTask& task, const Slots& keys, const Slots& values, bool sinks,
                 uint32_t count, uint32_t n_queries, uint32_t stride, Scratch* scratch) {
  Query* seeing[kMostQueries];
  const float* rotated[kMostQueries];
  float* weights[kMostQueries];
  float* gathered[kMostQueries];
  float* sums[kMostQueries];
  uint32_t n = 0;
  uint32_t from = count;
  uint32_t to = 0;
  for (uint32_t q = 0; q < n_queries; ++q) {
    Query& query = scratch->queries[q];
    if (query.block_from < query.block_to) {
      from = std::min(from, query.block_from);
      to = std::max(to, query.block_to);
      seeing[n] = &query;
      rotated[n] = scratch->rotated(sinks ? 1 : 0, q);
      weights[n] = scratch->weights[q];
      sums[n] = scratch->sums[q];
      gathered[n++] = scratch->gathered(q);
    }
  }
  if (n == 0) {
    return;
  }
  const uint32_t head_dim = task.push.head_dim;
  unpackSlots(keys, count, head_dim, stride, scratch->block);
  const uint32_t fours = (count + 3) / 4 * 4;
  std::fill(scratch->block + count * stride, scratch->block + fours * stride, 0.0f);
  uint32_t q = 0;
  for (; q + 2 <= n; q += 2) {
    score<2>(rotated + q, scratch->block, count, stride, weights + q);
  }
  if (q < n) {
    score<1>(rotated + q, scratch->block, count, stride, weights + q);
  }
  for (q = 0; q < n; ++q) {
    soften(task.push.scale, stride, seeing[q], weights[q], sums[q], gathered[q]);
  }
  unpackSlots(values, count, head_dim, stride, scratch->block);
  for (uint32_t c = 0; c < stride;) {
    const bool wide = c + 4 * kN <= stride;
    for (q = 0; q < n;) {
      const bool two = q + 2 <= n;
      const float* const* w = weights + q;
      float* const* g = gathered + q;
      if (wide) {
        two ? gather<2, 4>(w, scratch->block, from, to, stride, c, g)
            : gather<1, 4>(w, scratch->block, from, to, stride, c, g);
      } else {
        two ? gather<2, 1>(w, scratch->block, from, to, stride, c, g)
            : gather<1, 1>(w, scratch->block, from, to, stride, c, g);
      }
      q += two ? 2 : 1;
    }
    c += wide ? 4 * kN : kN;
  }
}

// Writes what a query gathered: normalised, or as the share of a split.
void finish(const AttentionTask& task, uint32_t token, uint32_t head, uint32_t split,
            float most, const float* sums, const float* gathered) {
  const AttentionPush& p = task.push;
  const float sum = hn::GetLane(hn::SumOfLanes(kF, hn::Load(kF, sums)));
  if (p.splits == 1) {
    float* out = task.out + static_cast<uint64_t>(token) * p.out_stride + head * p.head_dim;
    const float inverse = 1.0f / sum;
    for (uint32_t c = 0; c < p.head_dim; ++c) {
      out[c] = gathered[c] * inverse;
    }
    return;
  }
  float* out = task.out + ((static_cast<uint64_t>(token) * p.n_heads + head) * p.splits + split) *
                              (p.head_dim + kPartialExtra);
  if (sum != 0) {  // else the merge looks no further
    std::copy(gathered, gathered + p.head_dim, out);
  }
  out[p.head_dim] = most;
  out[p.head_dim + 1] = sum;
}

// At most kMostQueries queries: `n_heads` heads from `first_head` for each token.
void attendQueries(const AttentionTask& task, uint32_t kv_head, uint32_t first_token,
                   uint32_t n_tokens, uint32_t first_head, uint32_t n_heads, uint32_t split) {
  const AttentionPush& p = task.push;
  const uint32_t d = p.head_dim;
  const uint32_t stride = (d + kN - 1) / kN * kN;
  const uint32_t n_queries = n_tokens * n_heads;
  const uint32_t block_slots = std::min(kMostSlots, kBlockFloats / stride / 4 * 4);
  Scratch scratch;
  scratch.stride = stride;
  const View first = viewOf(task, first_token);
  uint32_t most_sinks = 0;
  uint32_t ring_slots = 0;
  for (uint32_t q = 0; q < n_queries; ++q) {
    const uint32_t t = first_token + q / n_heads;
    const View step = viewOf(task, t);
    Query& query = scratch.queries[q];
    query.n_sinks = step.n_sinks;
    query.ring_from = (step.ring_begin + p.ring - first.ring_begin) % p.ring;
    query.ring_to = query.ring_from + step.n_ring;
    most_sinks = std::max(most_sinks, step.n_sinks);
    ring_slots = std::max(ring_slots, step.n_ring == 0 ? 0 : query.ring_to);
    const float* in = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                      static_cast<uint64_t>(first_head + q % n_heads) * 2 * d;
    for (uint32_t which = 0; which < 2; ++which) {
      std::copy(in + which * d, in + (which + 1) * d, scratch.rotated(which, q));
      std::fill(scratch.rotated(which, q) + d, scratch.rotated(which, q) + stride, 0.0f);
    }
    std::fill(scratch.gathered(q), scratch.gathered(q) + stride, 0.0f);
    std::fill(scratch.sums[q], scratch.sums[q] + kN, 0.0f);
  }

  // Its share of the sinks and then of the ring.
  const uint64_t begin = static_cast<uint64_t>(split) * p.split_slots;
  const uint64_t end = p.splits == 1 ? UINT64_MAX : begin + p.split_slots;
  const auto share = [&](uint64_t first_slot, uint32_t slots, uint32_t* from, uint32_t* to) {
    const uint64_t last = first_slot + slots;
    *from = static_cast<uint32_t>(std::clamp(begin, first_slot, last) - first_slot);
    *to = static_cast<uint32_t>(std::clamp(end, first_slot, last) - first_slot);
  };
  uint32_t from = 0;
  uint32_t to = 0;
  share(0, most_sinks, &from, &to);
  for (uint32_t s = from; s < to; s += block_slots) {
    const uint32_t count = std::min(block_slots, to - s);
    for (uint32_t q = 0; q < n_queries; ++q) {
      Query& query = scratch.queries[q];
      query.block_from = 0;
      query.block_to = std::min(query.n_sinks, s + count) - std::min(query.n_sinks, s);
    }
    attendBlock(task, slotsOf(p, task.k_format, task.keys, kv_head, true, s),
                slotsOf(p, task.v_format, task.values, kv_head, true, s), true, count, n_queries,
                stride, &scratch);
  }
  share(most_sinks, ring_slots, &from, &to);
  for (uint32_t s = from; s < to;) {
    const uint32_t slot =
        static_cast<uint32_t>((static_cast<uint64_t>(first.ring_begin) + s) % p.ring);
    // Blocks end at the same slots whatever is seen, so that a token's result does not depend on the
    // tokens that share its chunk.
    const uint32_t count = std::min({block_slots - slot % block_slots, to - s, p.ring - slot});
    for (uint32_t q = 0; q < n_queries; ++q) {
      Query& query = scratch.queries[q];
      query.block_from = std::clamp(query.ring_from, s, s + count) - s;
      query.block_to = std::clamp(query.ring_to, s, s + count) - s;
    }
    attendBlock(task, slotsOf(p, task.k_format, task.keys, kv_head, false, slot),
                slotsOf(p, task.v_format, task.values, kv_head, false, slot), false, count,
                n_queries, stride, &scratch);
    s += count;
  }
  for (uint32_t q = 0; q < n_queries; ++q) {
    finish(task, first_token + q / n_heads, first_head + q % n_heads, split,
           scratch.queries[q].most, scratch.sums[q], scratch.gathered(q));
  }
}

void attend(const AttentionTask& task, uint32_t kv_head, uint32_t first, uint32_t count,
            uint32_t split) {
  const uint32_t group = task.push.n_heads / task.push.n_kv_heads;
  const uint32_t heads = std::min(group, kMostQueries);
  // Shares of different tokens begin at different slots.
  const uint32_t tokens = task.push.splits == 1 ? std::max(1u, kMostQueries / group) : 1;
  for (uint32_t t = 0; t < count; t += tokens) {
    for (uint32_t h = 0; h < group; h += heads) {
      attendQueries(task, kv_head, first + t, std::min(tokens, count - t), kv_head * group + h,
                    std::min(heads, group - h), split);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel {
AttendFn attendKernel(SimdTarget target) { return &ORIEL_CPU_PICK(target, attend); }
}  // namespace oriel
#endif
