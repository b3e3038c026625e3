// Attention of one token. Reading the cache dominates the time, so slots go from memory straight into registers, once
// for all query heads that share them. Compiled once per target.
#if defined(ORIEL_CPU_ATTENTION_ONE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_ATTENTION_ONE_INL_H_
#undef ORIEL_CPU_ATTENTION_ONE_INL_H_
#else
#define ORIEL_CPU_ATTENTION_ONE_INL_H_
#endif

#include <hwy/cache_control.h>

#include "cpu/attention-inl.h"
#include "cpu/integers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

// Lane order of a slot's values.

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

constexpr uint32_t kMostHeads = kManyRegisters ? 4 : 2;  // at a time
constexpr uint32_t kBlockSlots = 128;                    // at most
constexpr uint32_t kMostGroups = kvGroups(kMaxHeadDim);

/// Some query heads of a token, and their sums so far.
struct Heads {
  // For window keys, in the lane order of their format, and for sinks.
  HWY_ALIGN float queries[2][kMostHeads][kMaxHeadDim];
  IntUnit integers[kMostHeads][kMostGroups];  // quantised queries for window keys, with scales
  float integer_scales[kMostHeads][kMostGroups];
  HWY_ALIGN float gathered[kMostHeads][kMaxHeadDim];
  HWY_ALIGN float weights[kMostHeads][kBlockSlots];
  HWY_ALIGN float scaled[kMostGroups][kMostHeads][kBlockSlots];  // weights times a group's scales
  HWY_ALIGN float scales[kMostGroups][kBlockSlots];              // of the present block
  HWY_ALIGN float sums[kMostHeads][kN];                          // of weights, lane by lane
  float most[kMostHeads];
};

/// Slots to read, and the same number of following slots to prefetch.
struct Rows {
  const uint8_t* first;
  uint32_t bytes;  // bytes between slots
  const uint8_t* ahead;
  uint32_t ahead_bytes;
  uint32_t count;
  uint32_t head_dim;
};

/// The sums of the lanes of four vectors, block by block: lane i of each block belongs to vector i.
HWY_INLINE VF sumFour(VF a, VF b, VF c, VF d) {
  const VF ac = hn::Add(hn::InterleaveLower(kF, a, c), hn::InterleaveUpper(kF, a, c));
  const VF bd = hn::Add(hn::InterleaveLower(kF, b, d), hn::InterleaveUpper(kF, b, d));
  return hn::Add(hn::InterleaveLower(kF, ac, bd), hn::InterleaveUpper(kF, ac, bd));
}

/// The sums of the blocks of kN / 4 vectors: block b of the result belongs to fours[b].
HWY_INLINE VF sumBlocks(const VF* fours) {
#if HWY_MAX_BYTES == 64
  const VF a = hn::Add(hn::ConcatLowerLower(kF, fours[2], fours[0]),
                       hn::ConcatUpperUpper(kF, fours[2], fours[0]));
  const VF b = hn::Add(hn::ConcatLowerLower(kF, fours[3], fours[1]),
                       hn::ConcatUpperUpper(kF, fours[3], fours[1]));
  return hn::Add(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
#elif HWY_MAX_BYTES == 32
  return hn::Add(hn::ConcatLowerLower(kF, fours[1], fours[0]),
                 hn::ConcatUpperUpper(kF, fours[1], fours[0]));
#else
  return fours[0];
#endif
}

/// Prefetches; the address may be beyond the cache, because nothing is read yet.
HWY_INLINE void askFor(const void* first, uint64_t bytes) {
  const uint8_t* begin = static_cast<const uint8_t*>(first);
  for (const uint8_t* end = begin + bytes; begin < end; begin += 64) {
    hwy::Prefetch(begin);
  }
}

/// Prefetches the slots after first .. first + count - 1.
HWY_INLINE void prefetch(const Rows& rows, uint32_t first, uint32_t count) {
  askFor(rows.ahead + static_cast<uint64_t>(first) * rows.ahead_bytes,
         static_cast<uint64_t>(count) * rows.ahead_bytes);
}

/// The slots s .. s + kCount - 1; the last one repeated for missing ones.
template <uint32_t kCount>
HWY_INLINE void slotsFrom(const Rows& rows, uint32_t s, const uint8_t* (&slots)[kCount]) {
  const uint8_t* slot = rows.first + static_cast<uint64_t>(HWY_MIN(s, rows.count - 1)) * rows.bytes;
  for (uint32_t i = 0; i < kCount; ++i) {
    slots[i] = slot;
    slot += s + i + 1 < rows.count ? rows.bytes : 0;
  }
}

/// Adds values c .. c + kVectors * kN - 1 of four slots to the products of kHeads heads.
template <KvFormat kFormat, uint32_t kHeads, uint32_t kVectors>
HWY_INLINE void addScores(const uint8_t* const (&slots)[4], uint32_t s, uint32_t c,
                          const float (*queries)[kMaxHeadDim], const Heads& heads,
                          VF (&sums)[kHeads][4]) {
  VF keys[4][kVectors];
  for (uint32_t i = 0; i < 4; ++i) {
    valuesAt<kFormat>(slots[i], c, keys[i]);
    for (uint32_t v = 0; v < kVectors && kFormat != KvFormat::kF16; ++v) {
      keys[i][v] = hn::Mul(keys[i][v], hn::Set(kF, heads.scales[c / kKvGroup][s + i]));
    }
  }
  for (uint32_t v = 0; v < kVectors; ++v) {
    for (uint32_t h = 0; h < kHeads; ++h) {
      const VF query = hn::Load(kF, queries[h] + c + v * kN);
      for (uint32_t i = 0; i < 4; ++i) {
        sums[h][i] = hn::MulAdd(query, keys[i][v], sums[h][i]);
      }
    }
  }
}

/// Scores of kHeads heads with all slots, rounded up to whole vectors.
template <KvFormat kFormat, uint32_t kHeads>
HWY_NOINLINE void scoreRows(const Rows& keys, const float (*queries)[kMaxHeadDim], Heads* heads) {
  constexpr uint32_t kVectors = kFormat == KvFormat::kInt4 && kN == 16 ? kGroupVectors : 1;
  for (uint32_t s = 0; s < keys.count; s += kN) {
    VF fours[kHeads][kN / 4];
    for (uint32_t f = 0; f < kN / 4; ++f) {
      const uint8_t* slots[4];
      slotsFrom(keys, s + 4 * f, slots);
      prefetch(keys, s + 4 * f, 4);
      VF sums[kHeads][4];
      for (uint32_t h = 0; h < kHeads; ++h) {
        for (uint32_t i = 0; i < 4; ++i) {
          sums[h][i] = hn::Zero(kF);
        }
      }
      uint32_t c = 0;
      for (; c + kVectors * kN <= keys.head_dim; c += kVectors * kN) {
        addScores<kFormat, kHeads, kVectors>(slots, s + 4 * f, c, queries, *heads, sums);
      }
      if (c < keys.head_dim) {
        addScores<kFormat, kHeads, 1>(slots, s + 4 * f, c, queries, *heads, sums);
      }
      for (uint32_t h = 0; h < kHeads; ++h) {
        fours[h][f] = sumFour(sums[h][0], sums[h][1], sums[h][2], sums[h][3]);
      }
    }
    for (uint32_t h = 0; h < kHeads; ++h) {
      hn::Store(sumBlocks(fours[h]), kF, heads->weights[h] + s);
    }
  }
}

/// Adds to the scores of kHeads heads with kN slots the products of one group's words, lanes =
/// slots: at most kN of them, from value `c` on.
constexpr uint32_t kTileWords = HWY_MIN(kN, kKvGroup / 4);
template <uint32_t kHeads>
HWY_INLINE void addTile(const VF* words, uint32_t s, uint32_t c, const Heads& heads,
                        VF (&totals)[kHeads]) {
  const uint32_t group = c / kKvGroup;
  Sums sums[kHeads];
  for (uint32_t h = 0; h < kHeads; ++h) {
    sums[h].clear();
  }
  for (uint32_t w = 0; w < kTileWords; ++w) {
    const VU word = hn::BitCast(kU, words[w]);
    const VI16 even = evenBytes<true>(word);
    const VI16 odd = oddBytes<true>(word);
    const uint32_t pair = 2 * (c % kKvGroup / 4 + w);
    for (uint32_t h = 0; h < kHeads; ++h) {
      sums[h].addLow(even, pairOf(heads.integers[h][group], pair));
      sums[h].addHigh(odd, pairOf(heads.integers[h][group], pair + 1));
    }
  }
  const VF scale = hn::Load(kF, heads.scales[group] + s);
  for (uint32_t h = 0; h < kHeads; ++h) {
    const VF both = hn::Mul(scale, hn::Set(kF, heads.integer_scales[h][group]));
    totals[h] = hn::MulAdd(hn::ConvertTo(kF, sums[h].both()), both, totals[h]);
  }
}

/// The same as scoreRows of int8 keys in integers: of kN slots by kN words at a time.
constexpr uint32_t kTileValues = 4 * kN;
template <uint32_t kHeads>
HWY_NOINLINE void scoreIntegers(const Rows& keys, Heads* heads) {
  for (uint32_t s = 0; s < keys.count; s += kN) {
    VF totals[kHeads];
    for (uint32_t h = 0; h < kHeads; ++h) {
      totals[h] = hn::Zero(kF);
    }
    prefetch(keys, s, kN);
    const uint64_t bytes = keys.bytes;
    const uint8_t* first = keys.first + s * bytes;
    for (uint32_t c = 0; c < keys.head_dim; c += kTileValues) {
      VF tile[kN];
      const uint8_t* slot = first + c;
      if (HWY_LIKELY(s + kN <= keys.count)) {
        for (uint32_t i = 0; i < kN; i += 4, slot += 4 * bytes) {
          tile[i] = hn::LoadU(kF, reinterpret_cast<const float*>(slot));
          tile[i + 1] = hn::LoadU(kF, reinterpret_cast<const float*>(slot + bytes));
          tile[i + 2] = hn::LoadU(kF, reinterpret_cast<const float*>(slot + 2 * bytes));
          tile[i + 3] = hn::LoadU(kF, reinterpret_cast<const float*>(slot + 3 * bytes));
        }
      } else {
        for (uint32_t i = 0; i < kN; ++i) {  // the last one repeated for missing ones
          tile[i] = hn::LoadU(kF, reinterpret_cast<const float*>(slot));
          slot += s + i + 1 < keys.count ? bytes : 0;
        }
      }
      transpose(tile);
      addTile(tile, s, c, *heads, totals);
      if (kTileWords < kN) {
        addTile(tile + kN - kTileWords, s, c + 4 * (kN - kTileWords), *heads, totals);
      }
    }
    for (uint32_t h = 0; h < kHeads; ++h) {
      hn::Store(totals[h], kF, heads->weights[h] + s);
    }
  }
}
static_assert(kN == kTileWords || kN == 2 * kTileWords, "a tile has one or two parts");

/// gathered[h] += weight * value over all slots, in kVectors vectors from value `c` on: of one
/// group, or of whole groups.
template <KvFormat kFormat, uint32_t kHeads, uint32_t kVectors>
HWY_NOINLINE void gatherRows(const Rows& values, uint32_t c, Heads* heads) {
  constexpr uint32_t kPart = HWY_MIN(kVectors, kGroupVectors);  // with the same scale
  VF sums[kHeads][kVectors];
  for (uint32_t h = 0; h < kHeads; ++h) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      sums[h][i] = hn::Load(kF, heads->gathered[h] + c + i * kN);
    }
  }
  const float(*weights)[kMostHeads][kBlockSlots] =
      kFormat == KvFormat::kF16 ? &heads->weights : heads->scaled + c / kKvGroup;
  const uint8_t* slot = values.first;
  for (uint32_t s = 0; s < values.count; ++s, slot += values.bytes) {
    if (c == 0 && s % 4 == 0) {
      prefetch(values, s, 4);
    }
    for (uint32_t i = 0; i < kVectors; i += kPart) {
      VF part[kPart];
      valuesAt<kFormat>(slot, c + i * kN, part);
      for (uint32_t h = 0; h < kHeads; ++h) {
        const VF weight =
            hn::Set(kF, weights[kFormat == KvFormat::kF16 ? 0 : i / kGroupVectors][h][s]);
        for (uint32_t v = 0; v < kPart; ++v) {
          sums[h][i + v] = hn::MulAdd(weight, part[v], sums[h][i + v]);
        }
      }
    }
  }
  for (uint32_t h = 0; h < kHeads; ++h) {
    for (uint32_t i = 0; i < kVectors; ++i) {
      hn::Store(sums[h][i], kF, heads->gathered[h] + c + i * kN);
    }
  }
}

template <KvFormat kFormat, uint32_t kHeads>
void scoreBlock(const Rows& keys, bool sinks, Heads* heads) {
  if (kFormat == KvFormat::kInt8 && keys.head_dim % kTileValues == 0) {
    return scoreIntegers<kHeads>(keys, heads);
  }
  scoreRows<kFormat, kHeads>(keys, heads->queries[sinks ? 1 : 0], heads);
}

template <KvFormat kFormat, uint32_t kHeads>
void gatherBlock(const Rows& values, bool, Heads* heads) {
  uint32_t c = 0;
  for (; c + kWide * kN <= values.head_dim; c += kWide * kN) {
    gatherRows<kFormat, kHeads, kWide>(values, c, heads);
  }
  if constexpr (kN == 16 && kFormat == KvFormat::kInt4) {  // lanes have an order of their own
    for (; c + kKvGroup <= values.head_dim; c += kKvGroup) {
      gatherRows<kFormat, kHeads, kGroupVectors>(values, c, heads);
    }
  }
  for (; c < values.head_dim; c += kN) {
    gatherRows<kFormat, kHeads, 1>(values, c, heads);
  }
}

/// Turns the scores of all heads into weights; with kScaled (low-bit formats), into weights times a group's scales.
template <bool kScaled, uint32_t kHeads>
HWY_NOINLINE void softenBlock(const Rows& values, bool, Heads* heads) {
  const uint32_t end = (values.count + kN - 1) / kN * kN;
  const uint32_t groups = kvGroups(values.head_dim);
  VF most[kHeads];
  VF sums[kHeads];
  for (uint32_t h = 0; h < kHeads; ++h) {
    float* scores = heads->weights[h];
    if (values.count != end) {
      const VF last = hn::Load(kF, scores + end - kN);
      hn::Store(seenScores(last, end - kN, 0, values.count), kF, scores + end - kN);
    }
    VF largest = hn::Load(kF, scores);
    for (uint32_t s = kN; s < end; s += kN) {
      largest = hn::Max(largest, hn::Load(kF, scores + s));
    }
    raiseMost(largest, values.head_dim, &heads->most[h], heads->sums[h], heads->gathered[h]);
    most[h] = hn::Set(kF, heads->most[h]);
    sums[h] = hn::Load(kF, heads->sums[h]);
  }
  for (uint32_t s = 0; s < end; s += kN) {
    VF weights[kHeads];
    for (uint32_t h = 0; h < kHeads; ++h) {
      weights[h] = expOf(hn::Sub(hn::Load(kF, heads->weights[h] + s), most[h]));
      sums[h] = hn::Add(sums[h], weights[h]);
      if (!kScaled) {
        hn::Store(weights[h], kF, heads->weights[h] + s);
      }
    }
    for (uint32_t g = 0; g < groups && kScaled; ++g) {
      const VF scale = hn::Load(kF, heads->scales[g] + s);
      for (uint32_t h = 0; h < kHeads; ++h) {
        hn::Store(hn::Mul(weights[h], scale), kF, heads->scaled[g][h] + s);
      }
    }
  }
  for (uint32_t h = 0; h < kHeads; ++h) {
    hn::Store(sums[h], kF, heads->sums[h]);
  }
}

static_assert(kUnit == kKvGroup, "queries are rounded like activations");

using BlockFn = void (*)(const Rows& rows, bool sinks, Heads* heads);
struct BlockFns {
  BlockFn score, soften, gather;
};
template <KvFormat kFormat, uint32_t kHeads>
constexpr BlockFns blockFns() {
  return {&scoreBlock<kFormat, kHeads>, &softenBlock<kFormat != KvFormat::kF16, kHeads>,
          &gatherBlock<kFormat, kHeads>};
}
template <KvFormat kFormat>
BlockFns blockFnsOf(uint32_t n_heads) {
  constexpr uint32_t kMost = kMostHeads;
  return n_heads == 1   ? blockFns<kFormat, 1>()
         : n_heads == 2 ? blockFns<kFormat, 2>()
         : n_heads == 3 ? blockFns<kFormat, HWY_MIN(3, kMost)>()
                        : blockFns<kFormat, HWY_MIN(4, kMost)>();
}
inline BlockFns blockFnsOf(KvFormat format, uint32_t n_heads) {
  return format == KvFormat::kF16    ? blockFnsOf<KvFormat::kF16>(n_heads)
         : format == KvFormat::kInt8 ? blockFnsOf<KvFormat::kInt8>(n_heads)
                                     : blockFnsOf<KvFormat::kInt4>(n_heads);
}

/// scales[group][slot] from [slot][group], and zeros up to whole vectors.
inline void unpackScales(const uint16_t* halves, uint32_t count, uint32_t groups,
                         float (*scales)[kBlockSlots]) {
  uint32_t s = 0;
  if (groups == 2) {
    for (; s + kN <= count; s += kN) {
      const VU both = hn::BitCast(kU, hn::LoadU(kU16, halves + 2 * s));
      hn::StoreU(lowHalves(both), kF, scales[0] + s);
      hn::StoreU(highHalves(both), kF, scales[1] + s);
    }
  }
  for (; s < count; ++s) {
    for (uint32_t g = 0; g < groups; ++g) {
      scales[g][s] = halfToFloat(halves[s * groups + g]);
    }
  }
  for (uint32_t g = 0; g < groups; ++g) {
    std::fill(scales[g] + count, scales[g] + (count + kN - 1) / kN * kN, 0.0f);
  }
}

/// Slots of a block. The work between scores and sums does not depend on their number, so low-bit formats use many; the
/// first-level cache holds a block and the prefetched slots.
inline uint32_t blockSlots(const AttentionTask& task) {
  constexpr uint32_t kMostBytes = 16384;
  const uint32_t bytes = 4 * (kvValueWords(task.k_format, task.push.head_dim) +
                              kvValueWords(task.v_format, task.push.head_dim));
  return bytes * kBlockSlots <= kMostBytes       ? kBlockSlots
         : bytes * kBlockSlots <= 8 * kMostBytes ? kBlockSlots / 2
                                                 : kBlockSlots / 4;  // heads wider than 256
}

/// Prefetches the first keys of the ring, which have no block before them.
inline void askForFirst(const AttentionTask& task, const View& view, uint32_t kv_head,
                        const Splits& splits) {
  const AttentionPush& p = task.push;
  const uint64_t skipped = static_cast<uint64_t>(splits.first) * p.split_slots;
  const uint64_t order = skipped > view.n_sinks ? skipped - view.n_sinks : 0;
  if (order < view.count) {
    const uint64_t count = std::min<uint64_t>(blockSlots(task), view.count - order);
    const uint32_t slot = static_cast<uint32_t>((view.begin + order) % view.ring);
    const Slots keys = slotsOf(p, view, task.k_format, task.keys, kv_head, false, slot);
    askFor(keys.words, count * 4 * kvValueWords(keys.format, p.head_dim));
    if (keys.scales != nullptr) {
      askFor(keys.scales, count * sizeof(uint16_t) * kvGroups(p.head_dim));
    }
  }
}

/// Reads slots straight into registers; needs whole vectors: head_dim % kN == 0.
inline void attendOne(const AttentionTask& task, uint32_t kv_head, uint32_t token,
                      uint32_t first_head, uint32_t n_heads, const Splits& splits) {
  const AttentionPush& p = task.push;
  const uint32_t d = p.head_dim;
  const uint32_t groups = kvGroups(d);
  const bool integers = task.k_format == KvFormat::kInt8 && d % kTileValues == 0;
  const View& view = viewOf(task, token);
  askForFirst(task, view, kv_head, splits);
  Heads heads;
  for (uint32_t h = 0; h < n_heads; ++h) {
    const float* in = task.queries + static_cast<uint64_t>(token) * p.query_stride +
                      static_cast<uint64_t>(first_head + h) * 2 * d;
    for (uint32_t c = 0; c < d; ++c) {
      heads.queries[0][h][c] = p.scale * in[c];
      heads.queries[1][h][c] = p.scale * in[d + c];
    }
    if (task.k_format == KvFormat::kInt4) {
      reorder<true>(d, heads.queries[0][h]);
    }
    // A last group may be shorter: its scale covers the existing values.
    std::fill(heads.queries[0][h] + d, heads.queries[0][h] + groups * kKvGroup, 0.0f);
    for (uint32_t g = 0; g < groups && integers; ++g) {
      Codes codes;
      quantiseUnit(heads.queries[0][h] + g * kKvGroup, kMostOfPairs, &codes);
      storePairs(codes, heads.integers[h][g].values);
      heads.integer_scales[h][g] = codes.sums.scale;
    }
    std::fill(heads.gathered[h], heads.gathered[h] + d, 0.0f);
    std::fill(heads.sums[h], heads.sums[h] + kN, 0.0f);
    heads.most[h] = kLeast;
  }
  bool any = false;  // gathered
  bool in_lanes = false;
  const auto turn = [&](bool to_lanes) {
    if (any && task.v_format == KvFormat::kInt4 && in_lanes != to_lanes) {
      for (uint32_t h = 0; h < n_heads; ++h) {
        to_lanes ? reorder<true>(d, heads.gathered[h]) : reorder<false>(d, heads.gathered[h]);
      }
    }
    any = true;
    in_lanes = to_lanes;
  };
  const BlockFns sink_fns = blockFnsOf(KvFormat::kF16, n_heads);
  const BlockFns key_fns = blockFnsOf(task.k_format, n_heads);
  const BlockFns value_fns = blockFnsOf(task.v_format, n_heads);
  forEachBlock(
      p, splits, view.n_sinks, view, view.count, blockSlots(task),
      [&](bool sinks, uint32_t slot, uint32_t, uint32_t count) {
        const Slots keys = slotsOf(p, view, task.k_format, task.keys, kv_head, sinks, slot);
        const Slots values = slotsOf(p, view, task.v_format, task.values, kv_head, sinks, slot);
        Rows k = {reinterpret_cast<const uint8_t*>(keys.words),
                  4 * kvValueWords(keys.format, d),
                  reinterpret_cast<const uint8_t*>(values.words),
                  4 * kvValueWords(values.format, d),
                  count,
                  d};
        const Rows v = {k.ahead, k.ahead_bytes, k.first + static_cast<uint64_t>(count) * k.bytes,
                        k.bytes, count,         d};
        turn(!sinks);
        const uint32_t n_scales = count * groups;
        if (keys.scales != nullptr) {
          askFor(keys.scales + n_scales, sizeof(uint16_t) * n_scales);  // of the next block
          unpackScales(keys.scales, count, groups, heads.scales);
        }
        (sinks ? sink_fns : key_fns).score(k, sinks, &heads);
        for (uint32_t h = 0; h < n_heads && p.soft_cap != 0; ++h) {
          capScores(p.soft_cap, count, heads.weights[h]);
        }
        if (values.scales != nullptr) {
          askFor(values.scales + n_scales, sizeof(uint16_t) * n_scales);
          unpackScales(values.scales, count, groups, heads.scales);
        }
        (sinks ? sink_fns : value_fns).soften(v, sinks, &heads);
        (sinks ? sink_fns : value_fns).gather(v, sinks, &heads);
      });
  turn(false);
  for (uint32_t h = 0; h < n_heads; ++h) {
    finish(task, token, first_head + h, splits, heads.most[h], heads.sums[h], heads.gathered[h]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
