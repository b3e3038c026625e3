#include "cpu/ops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/latent_attention.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/attention_chunk-inl.h"
#include "cpu/attention_one-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

constexpr uint32_t kLatentSlots = 16;  // per block: its floats fit the second-level cache
constexpr uint32_t kMostCols = kMaxLatentDim + kMaxLatentRopeDim;
constexpr uint32_t kTileHeads = kManyRegisters ? 4 : 2;  // scores at a time, with four slots each
static_assert(kLatentSlots % kN == 0, "scores are whole vectors");
static_assert(kMostLatentQueries % kSumQueries == 0 && kMostLatentQueries % kTileHeads == 0,
              "whole tiles of queries");

/// Query heads of neighbouring tokens, and their sums so far.
struct LatentQueries {
  uint32_t n = 0;
  uint32_t n_sinks[kMostLatentQueries];
  uint32_t ring_from[kMostLatentQueries];  // its window, counted from the first slot that any sees
  uint32_t ring_to[kMostLatentQueries];
  float* weights[kMostLatentQueries];
  float* gathered[kMostLatentQueries];
  float most[kMostLatentQueries];
  HWY_ALIGN float sums[kMostLatentQueries][kN];  // of weights, lane by lane
  HWY_ALIGN float weight_rows[kMostLatentQueries][kLatentSlots];
  HWY_ALIGN float rows[kMostCols * kLatentSlots];  // [slot][value]
  HWY_ALIGN float gathered_rows[kGatheredLatentFloats];
};
/// Scaled queries: rows as long as a slot in floats, with padding.
struct ScoredQueries {
  HWY_ALIGN float rows[kScoredFloats];
};

/// The cache in the layout of attention: a key head with latent and key.
inline AttentionPush memoryPush(const LatentAttentionPush& p) {
  AttentionPush push = {};
  push.n_heads = p.n_heads;
  push.n_kv_heads = 1;
  push.head_dim = p.latent_dim + p.rope_dim;
  push.sinks = p.sinks;
  push.all_sinks = p.all_sinks;
  push.splits = p.splits;
  push.split_slots = p.split_slots;
  return push;
}

inline const View& latentView(const LatentAttentionTask& task, uint32_t token) {
  return task.step.view(token, task.push.view);
}

/// Scores of kTileHeads queries, `stride` floats apart, with kN slots.
HWY_NOINLINE void scoreTileOfSlots(const float* queries, const float* rows, uint32_t stride,
                                   float* const* scores, uint32_t slot) {
  VF fours[kTileHeads][kN / 4];
  for (uint32_t f = 0; f < kN / 4; ++f) {
    const float* const row = rows + uint64_t{slot + 4 * f} * stride;
    VF sums[kTileHeads][4];
    for (uint32_t q = 0; q < kTileHeads; ++q) {
      for (uint32_t i = 0; i < 4; ++i) {
        sums[q][i] = hn::Zero(kF);
      }
    }
    for (uint32_t c = 0; c < stride; c += kN) {
      VF values[4];
      for (uint32_t i = 0; i < 4; ++i) {
        values[i] = hn::Load(kF, row + uint64_t{i} * stride + c);
      }
      for (uint32_t q = 0; q < kTileHeads; ++q) {
        const VF query = hn::Load(kF, queries + uint64_t{q} * stride + c);
        for (uint32_t i = 0; i < 4; ++i) {
          sums[q][i] = hn::MulAdd(query, values[i], sums[q][i]);
        }
      }
    }
    for (uint32_t q = 0; q < kTileHeads; ++q) {
      fours[q][f] = sumFour(sums[q][0], sums[q][1], sums[q][2], sums[q][3]);
    }
  }
  for (uint32_t q = 0; q < kTileHeads; ++q) {
    hn::Store(sumBlocks(fours[q]), kF, scores[q] + slot);
  }
}

/// A block that begins at slot `order` of the sinks or of the ring.
inline void attendLatents(const Slots& slots, bool sinks, uint32_t order, uint32_t count,
                          uint32_t cols, uint32_t stride, uint32_t latent_dim,
                          const ScoredQueries& scored, LatentQueries* queries) {
  uint32_t from[kMostLatentQueries];
  uint32_t to[kMostLatentQueries];
  uint32_t first = count;
  uint32_t last = 0;
  for (uint32_t q = 0; q < queries->n; ++q) {
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
  unpackSlots(slots, count, {cols, 0, cols}, stride, queries->rows);
  // Prefetches the next slots during this work.
  const uint64_t slot_words = kvValueWords(slots.format, cols);
  askFor(slots.words + count * slot_words, 4 * slot_words * kLatentSlots);
  const uint32_t whole = (count + kN - 1) / kN * kN;
  std::fill(queries->rows + uint64_t{count} * stride, queries->rows + uint64_t{whole} * stride,
            0.0f);
  for (uint32_t q = 0; q < queries->n; q += kTileHeads) {
    for (uint32_t s = 0; s < whole; s += kN) {
      scoreTileOfSlots(scored.rows + uint64_t{q} * stride, queries->rows, stride,
                       queries->weights + q, s);
    }
  }
  const uint32_t gathered = (latent_dim + kN - 1) / kN * kN;
  for (uint32_t q = 0; q < queries->n; ++q) {
    if (from[q] < to[q]) {
      soften(from[q], to[q], gathered, &queries->most[q], queries->weights[q], queries->sums[q],
             queries->gathered[q]);
    }
    const uint32_t end = from[q] < to[q] ? (to[q] + kN - 1) / kN * kN : 0;
    std::fill(queries->weights[q] + end, queries->weights[q] + kLatentSlots, 0.0f);
  }
  // The sums after the latent in an incomplete vector are of keys, and are ignored.
  for (uint32_t q = 0; q < queries->n; q += kSumQueries) {
    sumRows(queries->weights + q, queries->rows, first, last, stride, gathered, 0,
            queries->gathered + q);
  }
}

// `n_heads` heads from `first_head` on, for tokens that share a cache.
inline void attendTokens(const LatentAttentionTask& task, uint32_t first_token, uint32_t n_tokens,
                         uint32_t first_head, uint32_t n_heads, const Splits& splits) {
  const LatentAttentionPush& p = task.push;
  const AttentionPush memory = memoryPush(p);
  const uint32_t cols = memory.head_dim;
  const uint32_t stride = (cols + kN - 1) / kN * kN;
  const uint32_t gathered = (p.latent_dim + kN - 1) / kN * kN;
  LatentQueries queries;
  ScoredQueries scored;
  queries.n = n_tokens * n_heads;
  const View& first = latentView(task, first_token);
  const uint32_t whole = (queries.n + kSumQueries - 1) / kSumQueries * kSumQueries;
  uint32_t most_sinks = 0;
  uint32_t ring_slots = 0;
  const auto queryOf = [&](uint32_t q) {
    return task.queries + uint64_t{first_token + q / n_heads} * p.query_stride +
           uint64_t{first_head + q % n_heads} * (p.latent_dim + 2 * p.rope_dim);
  };
  for (uint32_t q = 0; q < whole; ++q) {
    queries.weights[q] = queries.weight_rows[q];
    queries.gathered[q] = queries.gathered_rows + uint64_t{q} * gathered;
    std::fill(queries.gathered[q], queries.gathered[q] + gathered, 0.0f);
    std::fill(queries.weights[q], queries.weights[q] + kLatentSlots, 0.0f);
    float* const row = scored.rows + uint64_t{q} * stride;
    std::fill(row, row + stride, 0.0f);
    if (q >= queries.n) {  // padding of a tile is unused
      continue;
    }
    const View& view = latentView(task, first_token + q / n_heads);
    queries.n_sinks[q] = view.n_sinks;
    queries.ring_from[q] = (view.begin + first.ring - first.begin) % first.ring;
    queries.ring_to[q] = queries.ring_from[q] + view.count;
    most_sinks = std::max(most_sinks, view.n_sinks);
    ring_slots = std::max(ring_slots, view.count == 0 ? 0 : queries.ring_to[q]);
    queries.most[q] = kLeast;
    std::fill(queries.sums[q], queries.sums[q] + kN, 0.0f);
    const float* const from = queryOf(q);
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      row[c] = p.scale * from[c];
    }
  }
  // The rotated part, which differs between sinks and the ring.
  bool of_sinks = false;
  const auto turn = [&](bool to_sinks) {
    for (uint32_t q = 0; q < queries.n; ++q) {
      const float* const from = queryOf(q) + p.latent_dim + (to_sinks ? p.rope_dim : 0);
      float* const row = scored.rows + uint64_t{q} * stride + p.latent_dim;
      for (uint32_t c = 0; c < p.rope_dim; ++c) {
        row[c] = p.scale * from[c];
      }
    }
    of_sinks = to_sinks;
  };
  turn(false);
  forEachBlock(memory, splits, most_sinks, first, ring_slots, kLatentSlots,
               [&](bool sinks, uint32_t slot, uint32_t order, uint32_t count) {
                 if (sinks != of_sinks) {
                   turn(sinks);
                 }
                 attendLatents(slotsOf(memory, first, task.format, task.memory, 0, sinks, slot),
                               sinks, order, count, cols, stride, p.latent_dim, scored, &queries);
               });
  AttentionTask out(task.step);
  out.push = memory;
  out.push.head_dim = p.latent_dim;
  out.push.out_stride = p.out_stride;
  out.out = task.out;
  for (uint32_t q = 0; q < queries.n; ++q) {
    finish(out, first_token + q / n_heads, first_head + q % n_heads, splits, queries.most[q],
           queries.sums[q], queries.gathered[q]);
  }
}

void attendToLatents(const LatentAttentionTask& task, uint32_t first, uint32_t count,
                     uint32_t first_split, uint32_t n_splits) {
  const LatentAttentionPush& p = task.push;
  const uint32_t most = mostLatentQueries(p.latent_dim, p.rope_dim);
  const uint32_t passes = (p.n_heads + most - 1) / most;
  const uint32_t heads = (p.n_heads + passes - 1) / passes;
  for (uint32_t t = 0; t < count;) {
    uint32_t tokens = 1;
    // Shares of different tokens begin at different slots.
    while (p.splits == 1 && t + tokens < count && passes == 1 &&
           task.step.token(first + t + tokens).base == task.step.token(first + t).base) {
      ++tokens;
    }
    for (uint32_t h = 0; h < p.n_heads; h += heads) {
      attendTokens(task, first + t, tokens, h, std::min(heads, p.n_heads - h),
                   {first_split, n_splits});
    }
    t += tokens;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {
AttendLatentsFn attendLatentsKernel(SimdTarget target) {
  return &ORIEL_CPU_PICK(target, attendToLatents);
}
}  // namespace oriel_internal
#endif
