// Attention of a chunk, which is limited by arithmetic. A block of slots is unpacked to floats once,
// its keys transposed so that lanes are slots, and serves all query heads of several tokens. Compiled
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

/// Values `from` .. `to` - 1 of a slot's head_dim.
struct Strip {
  uint32_t head_dim;
  uint32_t from;
  uint32_t to;
};

template <KvFormat kFormat>
void unpackLowBits(const Slots& slots, uint32_t count, const Strip& strip, uint32_t stride,
                   float* out) {
  const uint32_t words = kvValueWords(kFormat, strip.head_dim);
  const uint32_t groups = kvGroups(strip.head_dim);
  const uint32_t whole = strip.to / kN * kN;
  float scales[kMostSlots * kvGroups(kMaxHeadDim)];
  unpackHalves(slots.scales, count * groups, scales);
  for (uint32_t s = 0; s < count; ++s, out += stride) {
    const uint8_t* bytes =
        reinterpret_cast<const uint8_t*>(slots.words + static_cast<uint64_t>(s) * words);
    const float* scale = scales + s * groups;
    for (uint32_t c = strip.from; c < whole; c += kN) {
      const VF values = codeValues<kFormat>(bytes + (kFormat == KvFormat::kInt8 ? c : c / 2));
      hn::Store(hn::Mul(values, hn::Set(kF, scale[c / kKvGroup])), kF, out + (c - strip.from));
    }
    for (uint32_t c = whole; c < strip.to; ++c) {
      const uint32_t code = kFormat == KvFormat::kInt8
                                ? bytes[c]
                                : static_cast<uint32_t>(bytes[c / 2] >> (4 * (c % 2)) & 15);
      out[c - strip.from] = scale[c / kKvGroup] * kvCodeValue(kFormat, code);
    }
    std::fill(out + (strip.to - strip.from), out + stride, 0.0f);
  }
}

/// `count` slots as floats, `stride` apart, padded with zeros to `stride`. The strip begins at a
/// multiple of kN.
inline void unpackSlots(const Slots& slots, uint32_t count, const Strip& strip, uint32_t stride,
                        float* out) {
  switch (slots.format) {
    case KvFormat::kInt8:
      return unpackLowBits<KvFormat::kInt8>(slots, count, strip, stride, out);
    case KvFormat::kInt4:
      return unpackLowBits<KvFormat::kInt4>(slots, count, strip, stride, out);
    case KvFormat::kF16:
      break;
  }
  const uint16_t* halves = reinterpret_cast<const uint16_t*>(slots.words);
  const uint32_t values = strip.to - strip.from;
  for (uint32_t s = 0; s < count; ++s, out += stride) {
    unpackHalves(halves + static_cast<uint64_t>(s) * strip.head_dim + strip.from, values, out);
    std::fill(out + values, out + stride, 0.0f);
  }
}

/// Scores are computed for this many queries and two vectors of slots at a time, sums for kSumQueries and
/// kWide vectors.
constexpr uint32_t kScoreQueries = kManyRegisters ? 8 : 4;
constexpr uint32_t kSumQueries = 4;
constexpr uint32_t kBlockFloats = 4096;  // unpacked keys or values: fits the first-level cache
/// Transposed keys of the widest heads take one vector of slots.
constexpr uint32_t kWidestVector = kN * kMaxHeadDim;
constexpr uint32_t kMostKeyFloats = HWY_MAX(kBlockFloats, kWidestVector);
static_assert(kBlockFloats >= kN * kN, "a strip is at least a vector wide");
static_assert(mostQueries(kNarrowHead) % kScoreQueries == 0, "whole tiles of queries");
static_assert(mostQueries(kMaxHeadDim) % kScoreQueries == 0, "likewise");
constexpr uint32_t kGatheredFloats = kMostQueries * kNarrowHead;
static_assert(mostQueries(kMaxHeadDim) * kMaxHeadDim <= kGatheredFloats, "as wide heads gather");

/// Query heads of neighbouring tokens, and their results so far.
struct Queries {
  const float* rotated[kMostQueries];  // for window keys; queries for sinks follow head_dim later
  float* weights[kMostQueries];
  float* gathered[kMostQueries];
  uint32_t n_sinks[kMostQueries];
  uint32_t ring_from[kMostQueries];  // its window, counted from the first slot that any query sees
  uint32_t ring_to[kMostQueries];
  float slope[kMostQueries];    // AttentionPush::alibi_heads
  int32_t place[kMostQueries];  // of its token, counted in the same way
  float most[kMostQueries];
  HWY_ALIGN float sums[kMostQueries][kN];  // of weights, lane by lane
  HWY_ALIGN float weight_rows[kMostQueries][kMostSlots];
  // Rows of head_dim floats and padding: close together, or they would push each other out of the
  // cache.
  HWY_ALIGN float gathered_rows[kGatheredFloats];
  HWY_ALIGN float rows[kBlockFloats];       // [slot][value], a strip of the values
  HWY_ALIGN float columns[kMostKeyFloats];  // [value][slot]
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

/// The same for `width` values of rows `stride` apart, which are gathered from value `to`.
inline void sumRows(const float* const* weights, const float* rows, uint32_t first, uint32_t last,
                    uint32_t stride, uint32_t width, uint32_t to, float* const* gathered) {
  float* sums[kSumQueries];
  for (uint32_t q = 0; q < kSumQueries; ++q) {
    sums[q] = gathered[q] + to;
  }
  uint32_t c = 0;
  for (; c + kWide * kN <= width; c += kWide * kN) {
    sumTile<kWide>(weights, rows, first, last, stride, c, sums);
  }
  for (; c < width; c += kN) {
    sumTile<1>(weights, rows, first, last, stride, c, sums);
  }
}

/// Lowers scores by `slope` per slot of distance from the token. The first slot is `distance` away.
inline void addDistances(float slope, int32_t distance, uint32_t count, float* scores) {
  for (uint32_t s = 0; s < count; ++s) {
    scores[s] -= slope * std::abs(static_cast<float>(distance + static_cast<int32_t>(s)));
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
  const uint32_t widest = std::min(kBlockFloats / slots / kN * kN, stride);  // of a strip
  for (uint32_t from_value = 0; from_value < stride; from_value += widest) {
    const uint32_t width = std::min(widest, stride - from_value);
    unpackSlots(keys, count, {d, from_value, std::min(from_value + width, d)}, width,
                queries->rows);
    std::fill(queries->rows + count * width, queries->rows + slots * width, 0.0f);
    for (uint32_t s = 0; s < slots; s += kN) {
      for (uint32_t c = 0; c < width; c += kN) {
        transposeTile(queries->rows + s * width + c, width,
                      queries->columns + (from_value + c) * slots + s, slots);
      }
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
    if (task.push.alibi_heads != 0) {
      addDistances(queries->slope[q], static_cast<int32_t>(order) - queries->place[q], to[q],
                   queries->weights[q]);
    }
    if (from[q] < to[q]) {
      soften(from[q], to[q], stride, &queries->most[q], queries->weights[q], queries->sums[q],
             queries->gathered[q]);
    }
    const uint32_t end = from[q] < to[q] ? (to[q] + kN - 1) / kN * kN : 0;
    std::fill(queries->weights[q] + end, queries->weights[q] + kMostSlots, 0.0f);
  }
  for (uint32_t from_value = 0; from_value < stride; from_value += widest) {
    const uint32_t width = std::min(widest, stride - from_value);
    unpackSlots(values, count, {d, from_value, std::min(from_value + width, d)}, width,
                queries->rows);
    for (uint32_t q = 0; q < n; q += kSumQueries) {
      sumRows(queries->weights + q, queries->rows, first, last, width, width, from_value,
              queries->gathered + q);
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
    const uint32_t t = first_token + (q < n ? q / n_heads : 0);  // padding of a tile is unused
    const View& view = viewOf(task, t);
    queries.n_sinks[q] = view.n_sinks;
    queries.ring_from[q] = (view.begin + first.ring - first.begin) % first.ring;
    queries.ring_to[q] = queries.ring_from[q] + view.count;
    queries.place[q] = static_cast<int32_t>(view.slot) - static_cast<int32_t>(first.begin);
    queries.slope[q] =
        p.alibi_heads != 0 ? alibiSlope(p.alibi_heads, first_head + (q < n ? q % n_heads : 0)) : 0;
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
