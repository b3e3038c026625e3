// Attention of a chunk: arithmetic is what it costs. A block of slots is unpacked to floats once,
// its keys turned so that lanes are slots, and serves all query heads of several tokens. Compiled
// once per target.
#if defined(ORIEL_CPU_ATTENTION_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_ATTENTION_CHUNK_INL_H_
#undef ORIEL_CPU_ATTENTION_CHUNK_INL_H_
#else
#define ORIEL_CPU_ATTENTION_CHUNK_INL_H_
#endif

#include "cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

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
inline void unpackSlots(const Slots& slots, uint32_t count, uint32_t head_dim, uint32_t stride,
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

/// Scores are made of this many queries and two vectors of slots at a time, sums of kSumQueries and
/// kWide vectors.
constexpr uint32_t kScoreQueries = kManyRegisters ? 8 : 4;
constexpr uint32_t kSumQueries = 4;
constexpr uint32_t kBlockFloats = 4096;  // of keys or values unpacked: first-level cache
/// Blocks of the widest heads are one vector of slots, whatever that takes.
constexpr uint32_t kWidestVector = kN * kMaxHeadDim;
constexpr uint32_t kMostBlockFloats = HWY_MAX(kBlockFloats, kWidestVector);
static_assert(mostQueries(kNarrowHead) % kScoreQueries == 0, "whole tiles of queries");
static_assert(mostQueries(kMaxHeadDim) % kScoreQueries == 0, "likewise");
constexpr uint32_t kGatheredFloats = kMostQueries * kNarrowHead;
static_assert(mostQueries(kMaxHeadDim) * kMaxHeadDim <= kGatheredFloats, "as wide heads gather");

/// Query heads of neighbouring tokens, and what they have gathered so far.
struct Queries {
  const float* rotated[kMostQueries];  // for window keys; for sinks head_dim further
  float* weights[kMostQueries];
  float* gathered[kMostQueries];
  uint32_t n_sinks[kMostQueries];
  uint32_t ring_from[kMostQueries];  // its window, counted from the first slot that any sees
  uint32_t ring_to[kMostQueries];
  float most[kMostQueries];
  HWY_ALIGN float sums[kMostQueries][kN];  // of weights, lane by lane
  HWY_ALIGN float weight_rows[kMostQueries][kMostSlots];
  // Rows of head_dim floats and padding: close together, or they would push each other out of the
  // cache.
  HWY_ALIGN float gathered_rows[kGatheredFloats];
  HWY_ALIGN float rows[kMostBlockFloats];     // [slot][value]
  HWY_ALIGN float columns[kMostBlockFloats];  // [value][slot]
};

/// out[c][r] = in[r][c], kN by kN.
HWY_INLINE void transposeTile(const float* in, uint32_t in_stride, float* out,
                              uint32_t out_stride) {
  VF tile[kN];
  for (uint32_t r = 0; r < kN; ++r) {
    tile[r] = hn::Load(kF, in + r * in_stride);
  }
  transpose(tile);
  for (uint32_t c = 0; c < kN; ++c) {
    hn::Store(tile[c], kF, out + c * out_stride);
  }
}

/// Scores of kScoreQueries queries with kVectors vectors of slots.
template <uint32_t kVectors>
HWY_NOINLINE void scoreTile(const float* const* queries, const float* columns, uint32_t stride,
                            uint32_t head_dim, float scale, uint32_t slot, float* const* scores) {
  VF sums[kScoreQueries][kVectors];
  for (uint32_t q = 0; q < kScoreQueries; ++q) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      sums[q][i] = hn::Zero(kF);
    }
  }
  const float* column = columns + slot;
  for (uint32_t c = 0; c < head_dim; ++c, column += stride) {
    VF key[kVectors];
    for (uint32_t i = 0; i < kVectors; ++i) {
      key[i] = hn::Load(kF, column + i * kN);
    }
    for (uint32_t q = 0; q < kScoreQueries; ++q) {
      const VF query = hn::Set(kF, queries[q][c]);
      for (uint32_t i = 0; i < kVectors; ++i) {
        sums[q][i] = hn::MulAdd(query, key[i], sums[q][i]);
      }
    }
  }
  for (uint32_t q = 0; q < kScoreQueries; ++q) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      hn::Store(hn::Mul(sums[q][i], hn::Set(kF, scale)), kF, scores[q] + slot + i * kN);
    }
  }
}

/// gathered[q] += weights[q][slot] * row[slot], for slots first .. last - 1 and kVectors vectors
/// from `c`.
template <uint32_t kVectors>
HWY_NOINLINE void sumTile(const float* const* weights, const float* rows, uint32_t first,
                          uint32_t last, uint32_t stride, uint32_t c, float* const* gathered) {
  VF sums[kSumQueries][kVectors];
  for (uint32_t q = 0; q < kSumQueries; ++q) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      sums[q][i] = hn::Load(kF, gathered[q] + c + i * kN);
    }
  }
  for (uint32_t s = first; s < last; ++s) {
    VF value[kVectors];
    for (uint32_t i = 0; i < kVectors; ++i) {
      value[i] = hn::Load(kF, rows + s * stride + c + i * kN);
    }
    for (uint32_t q = 0; q < kSumQueries; ++q) {
      const VF weight = hn::Set(kF, weights[q][s]);
      for (uint32_t i = 0; i < kVectors; ++i) {
        sums[q][i] = hn::MulAdd(weight, value[i], sums[q][i]);
      }
    }
  }
  for (uint32_t q = 0; q < kSumQueries; ++q) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      hn::Store(sums[q][i], kF, gathered[q] + c + i * kN);
    }
  }
}

/// A block that begins at slot `order` of the sinks or of the ring, for `n` queries.
inline void attendBlock(const AttentionTask& task, const Slots& keys, const Slots& values,
                        bool sinks, uint32_t order, uint32_t count, uint32_t n, uint32_t stride,
                        Queries* queries) {
  const uint32_t d = task.push.head_dim;
  uint32_t from[kMostQueries];
  uint32_t to[kMostQueries];
  uint32_t first = count;
  uint32_t last = 0;
  for (uint32_t q = 0; q < n; ++q) {
    const uint32_t end = order + count;
    from[q] = std::clamp(sinks ? 0 : queries->ring_from[q], order, end) - order;
    to[q] = std::clamp(sinks ? queries->n_sinks[q] : queries->ring_to[q], order, end) - order;
    if (from[q] < to[q]) {
      first = std::min(first, from[q]);
      last = std::max(last, to[q]);
    }
  }
  if (first >= last) {
    return;
  }
  const uint32_t slots = (count + kN - 1) / kN * kN;
  unpackSlots(keys, count, d, stride, queries->rows);
  std::fill(queries->rows + count * stride, queries->rows + slots * stride, 0.0f);
  for (uint32_t s = 0; s < slots; s += kN) {
    for (uint32_t c = 0; c < stride; c += kN) {
      transposeTile(queries->rows + s * stride + c, stride, queries->columns + c * slots + s,
                    slots);
    }
  }
  const uint32_t whole = (n + kScoreQueries - 1) / kScoreQueries * kScoreQueries;
  for (uint32_t q = 0; q < whole; q += kScoreQueries) {
    const float* rotated[kScoreQueries];
    for (uint32_t i = 0; i < kScoreQueries; ++i) {
      rotated[i] = queries->rotated[q + i] + (sinks ? d : 0);
    }
    uint32_t s = 0;
    for (; s + 2 * kN <= slots; s += 2 * kN) {
      scoreTile<2>(rotated, queries->columns, slots, d, task.push.scale, s, queries->weights + q);
    }
    if (s < slots) {
      scoreTile<1>(rotated, queries->columns, slots, d, task.push.scale, s, queries->weights + q);
    }
  }
  for (uint32_t q = 0; q < n; ++q) {
    if (task.push.soft_cap != 0 && from[q] < to[q]) {
      capScores(task.push.soft_cap, to[q], queries->weights[q]);
    }
    if (from[q] < to[q]) {
      soften(from[q], to[q], stride, &queries->most[q], queries->weights[q], queries->sums[q],
             queries->gathered[q]);
    }
    const uint32_t end = from[q] < to[q] ? (to[q] + kN - 1) / kN * kN : 0;
    std::fill(queries->weights[q] + end, queries->weights[q] + kMostSlots, 0.0f);
  }
  unpackSlots(values, count, d, stride, queries->rows);
  for (uint32_t q = 0; q < n; q += kSumQueries) {
    const float* const* w = queries->weights + q;
    uint32_t c = 0;
    for (; c + kWide * kN <= stride; c += kWide * kN) {
      sumTile<kWide>(w, queries->rows, first, last, stride, c, queries->gathered + q);
    }
    for (; c < stride; c += kN) {
      sumTile<1>(w, queries->rows, first, last, stride, c, queries->gathered + q);
    }
  }
}

/// At most kMostQueries queries: `n_heads` heads from `first_head` for each token; all tokens use one memory.
inline void attendMany(const AttentionTask& task, uint32_t kv_head, uint32_t first_token,
                       uint32_t n_tokens, uint32_t first_head, uint32_t n_heads,
                       const Splits& splits) {
  const AttentionPush& p = task.push;
  const uint32_t d = p.head_dim;
  const uint32_t stride = (d + kN - 1) / kN * kN;
  const uint32_t n = n_tokens * n_heads;
  const uint32_t block_slots = std::clamp(kBlockFloats / stride / kN * kN, kN, kMostSlots);
  Queries queries;
  const View& first = viewOf(task, first_token);
  uint32_t most_sinks = 0;
  uint32_t ring_slots = 0;
  for (uint32_t q = 0; q < mostQueries(d); ++q) {
    const uint32_t t = first_token + (q < n ? q / n_heads : 0);  // what fills up a tile is not used
    const View& view = viewOf(task, t);
    queries.n_sinks[q] = view.n_sinks;
    queries.ring_from[q] = (view.begin + first.ring - first.begin) % first.ring;
    queries.ring_to[q] = queries.ring_from[q] + view.count;
    queries.rotated[q] = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                         static_cast<uint64_t>(first_head + (q < n ? q % n_heads : 0)) * 2 * d;
    queries.weights[q] = queries.weight_rows[q];
    queries.gathered[q] = queries.gathered_rows + q * stride;
    queries.most[q] = kLeast;
    if (q < n) {
      most_sinks = std::max(most_sinks, view.n_sinks);
      ring_slots = std::max(ring_slots, view.count == 0 ? 0 : queries.ring_to[q]);
    }
  }
  const uint32_t whole = (n + kSumQueries - 1) / kSumQueries * kSumQueries;
  std::fill(queries.gathered_rows, queries.gathered_rows + whole * stride, 0.0f);
  for (uint32_t q = 0; q < n; ++q) {
    std::fill(queries.sums[q], queries.sums[q] + kN, 0.0f);
  }
  forEachBlock(p, splits, most_sinks, first, ring_slots, block_slots,
               [&](bool sinks, uint32_t slot, uint32_t order, uint32_t count) {
                 attendBlock(task,
                             slotsOf(p, first, task.k_format, task.keys, kv_head, sinks, slot),
                             slotsOf(p, first, task.v_format, task.values, kv_head, sinks, slot),
                             sinks, order, count, n, stride, &queries);
               });
  for (uint32_t q = 0; q < n; ++q) {
    finish(task, first_token + q / n_heads, first_head + q % n_heads, splits, queries.most[q],
           queries.sums[q], queries.gathered[q]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
