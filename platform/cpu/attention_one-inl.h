// Attention of one token: reading the cache is what it costs, so that slots go from memory straight
// into registers, once for all query heads that share them. Compiled once per target.
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
namespace oriel {
namespace HWY_NAMESPACE {

constexpr uint32_t kMostHeads = kManyRegisters ? 4 : 2;  // worked on at a time
constexpr uint32_t kMostGroups = kvGroups(kMaxHeadDim);

/// Some query heads of a token, and what they have gathered so far.
struct Heads {
  // For window keys, as their format has its lanes, and for sinks.
  HWY_ALIGN float queries[2][kMostHeads][kMaxHeadDim];
  IntUnit integers[kMostHeads][kMostGroups];  // queries for window keys again, and their scales
  float integer_scales[kMostHeads][kMostGroups];
  HWY_ALIGN float gathered[kMostHeads][kMaxHeadDim];
  HWY_ALIGN float weights[kMostHeads][kMostSlots];
  HWY_ALIGN float scaled[kMostGroups][kMostHeads][kMostSlots];  // weights times a group's scales
  HWY_ALIGN float scales[kMostGroups][kMostSlots];              // of the block at hand
  HWY_ALIGN float sums[kMostHeads][kN];                         // of weights, lane by lane
  float most[kMostHeads];
};

/// Slots to read, and what will be read next, as far apart: asked for meanwhile.
struct Rows {
  const uint8_t* first;
  uint32_t bytes;  // from one to the next
  const uint8_t* ahead;
  uint32_t ahead_bytes;
  uint32_t count;
  uint32_t head_dim;
};

// Sixteen codes of int4 are read in an order of their own.
constexpr uint32_t laneOf(uint32_t value) { return value < 8 ? 2 * value : 2 * value - 15; }

/// Values c .. c + kN - 1 of a slot; low bits without their scale, int4 in order of lanes.
template <KvFormat kFormat>
HWY_INLINE VF valuesAt(const uint8_t* slot, uint32_t c) {
  if (kFormat == KvFormat::kF16) {
    return loadHalves(reinterpret_cast<const uint16_t*>(slot) + c);
  }
  if (kFormat == KvFormat::kInt8) {
    return codeValues<KvFormat::kInt8>(slot + c);
  }
#if HWY_MAX_BYTES == 64
  // Even lanes hold the first eight codes, odd ones the others; a look-up sees the lowest four
  // bits.
  HWY_ALIGN static constexpr uint32_t kShift[kN] = {0,  0,  4,  4,  8,  8,  12, 12,
                                                    16, 16, 20, 20, 24, 24, 28, 28};
  const hn::Repartition<uint64_t, DF> k64;
  uint64_t codes;
  hwy::CopyBytes<8>(slot + c / 2, &codes);
  return levelsOf(hn::Shr(hn::BitCast(kU, hn::Set(k64, codes)), hn::Load(kU, kShift)));
#else
  return codeValues<KvFormat::kInt4>(slot + c / 2);
#endif
}

/// Between the order of values and that of lanes.
template <bool kToLanes>
void reorder(uint32_t head_dim, float* values) {
  for (uint32_t c = 0; kN == 16 && c < head_dim; c += 16) {
    float old[16];
    std::copy(values + c, values + c + 16, old);
    for (uint32_t i = 0; i < 16; ++i) {
      values[c + (kToLanes ? laneOf(i) : i)] = old[kToLanes ? i : laneOf(i)];
    }
  }
}

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

/// What lies ahead of slots first .. first + count - 1.
HWY_INLINE void prefetch(const Rows& rows, uint32_t first, uint32_t count) {
  const uint8_t* begin = rows.ahead + static_cast<uint64_t>(first) * rows.ahead_bytes;
  const uint8_t* end = begin + static_cast<uint64_t>(count) * rows.ahead_bytes;
  for (; begin < end; begin += 64) {
    hwy::Prefetch(begin);
  }
}

/// The slots s .. s + kCount - 1; the last one again for those that are not there.
template <uint32_t kCount>
HWY_INLINE void slotsFrom(const Rows& rows, uint32_t s, const uint8_t* (&slots)[kCount]) {
  const uint8_t* slot = rows.first + static_cast<uint64_t>(HWY_MIN(s, rows.count - 1)) * rows.bytes;
  for (uint32_t i = 0; i < kCount; ++i) {
    slots[i] = slot;
    slot += s + i + 1 < rows.count ? rows.bytes : 0;
  }
}

/// Scores of kHeads heads with all slots, rounded up to whole vectors.
template <KvFormat kFormat, uint32_t kHeads>
HWY_NOINLINE void scoreRows(const Rows& keys, const float (*queries)[kMaxHeadDim], Heads* heads) {
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
      for (uint32_t c = 0; c < keys.head_dim; c += kN) {
        VF key[4];
        for (uint32_t i = 0; i < 4; ++i) {
          key[i] = valuesAt<kFormat>(slots[i], c);
          if (kFormat != KvFormat::kF16) {
            key[i] = hn::Mul(key[i], hn::Set(kF, heads->scales[c / kKvGroup][s + 4 * f + i]));
          }
        }
        for (uint32_t h = 0; h < kHeads; ++h) {
          const VF query = hn::Load(kF, queries[h] + c);
          for (uint32_t i = 0; i < 4; ++i) {
            sums[h][i] = hn::MulAdd(query, key[i], sums[h][i]);
          }
        }
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

/// The same of int8 keys in integers, lanes = slots: of kN slots by kN words at a time.
constexpr uint32_t kTileValues = 4 * kN;
template <uint32_t kHeads>
HWY_NOINLINE void scoreIntegers(const Rows& keys, Heads* heads) {
  constexpr uint32_t kWords = HWY_MIN(kN, kKvGroup / 4);  // of a group in a tile
  for (uint32_t s = 0; s < keys.count; s += kN) {
    VF totals[kHeads];
    for (uint32_t h = 0; h < kHeads; ++h) {
      totals[h] = hn::Zero(kF);
    }
    const uint8_t* slots[kN];
    slotsFrom(keys, s, slots);
    prefetch(keys, s, kN);
    for (uint32_t c = 0; c < keys.head_dim; c += kTileValues) {
      VF tile[kN];
      for (uint32_t i = 0; i < kN; ++i) {
        tile[i] = hn::LoadU(kF, reinterpret_cast<const float*>(slots[i] + c));
      }
      transpose(tile);
      for (uint32_t first = 0; first < kN; first += kWords) {
        const uint32_t value = c + 4 * first;
        Sums sums[kHeads];
        for (uint32_t h = 0; h < kHeads; ++h) {
          sums[h].clear();
        }
        for (uint32_t w = 0; w < kWords; ++w) {
          const VU words = hn::BitCast(kU, tile[first + w]);
          const VI16 even = evenBytes<true>(words);
          const VI16 odd = oddBytes<true>(words);
          for (uint32_t h = 0; h < kHeads; ++h) {
            const IntUnit& query = heads->integers[h][value / kKvGroup];
            const uint32_t pair = 2 * (value % kKvGroup / 4 + w);
            sums[h].addLow(even, pairOf(query, pair));
            sums[h].addHigh(odd, pairOf(query, pair + 1));
          }
        }
        const VF scale = hn::Load(kF, heads->scales[value / kKvGroup] + s);
        for (uint32_t h = 0; h < kHeads; ++h) {
          const VF both =
              hn::Mul(scale, hn::Set(kF, heads->integer_scales[h][value / kKvGroup]));
          totals[h] = hn::MulAdd(sums[h].both(), both, totals[h]);
        }
      }
    }
    for (uint32_t h = 0; h < kHeads; ++h) {
      hn::Store(totals[h], kF, heads->weights[h] + s);
    }
  }
}

/// gathered[h] += weight * value over all slots, in kVectors vectors from value `c` on.
template <KvFormat kFormat, uint32_t kHeads, uint32_t kVectors>
HWY_NOINLINE void gatherRows(const Rows& values, uint32_t c, Heads* heads) {
  VF sums[kHeads][kVectors];
  const float(*weights[kVectors])[kMostSlots];
  for (uint32_t i = 0; i < kVectors; ++i) {
    weights[i] = kFormat == KvFormat::kF16 ? heads->weights
                                           : heads->scaled[(c + i * kN) / kKvGroup];
    for (uint32_t h = 0; h < kHeads; ++h) {
      sums[h][i] = hn::Load(kF, heads->gathered[h] + c + i * kN);
    }
  }
  const uint8_t* slot = values.first;
  for (uint32_t s = 0; s < values.count; ++s, slot += values.bytes) {
    if (c == 0 && s % 4 == 0) {
      prefetch(values, s, 4);
    }
    for (uint32_t i = 0; i < kVectors; ++i) {
      const VF value = valuesAt<kFormat>(slot, c + i * kN);
      for (uint32_t h = 0; h < kHeads; ++h) {
        sums[h][i] = hn::MulAdd(hn::Set(kF, weights[i][h][s]), value, sums[h][i]);
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
  for (; c < values.head_dim; c += kN) {
    gatherRows<kFormat, kHeads, 1>(values, c, heads);
  }
}

static_assert(kUnit == kKvGroup, "queries are rounded like activations");

using BlockFn = void (*)(const Rows& rows, bool sinks, Heads* heads);
struct BlockFns {
  BlockFn score, gather;
};
template <KvFormat kFormat, uint32_t kHeads>
constexpr BlockFns blockFns() {
  return {&scoreBlock<kFormat, kHeads>, &gatherBlock<kFormat, kHeads>};
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

/// scales[group][slot] from [slot][group].
inline void unpackScales(const uint16_t* halves, uint32_t count, uint32_t groups,
                         float (*scales)[kMostSlots]) {
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
    std::fill(scales[g] + count, scales[g] + kMostSlots, 0.0f);
  }
}

inline void scaleWeights(uint32_t groups, uint32_t n_heads, Heads* heads) {
  for (uint32_t g = 0; g < groups; ++g) {
    for (uint32_t h = 0; h < n_heads; ++h) {
      for (uint32_t s = 0; s < kMostSlots; s += kN) {
        hn::Store(hn::Mul(hn::Load(kF, heads->weights[h] + s), hn::Load(kF, heads->scales[g] + s)),
                  kF, heads->scaled[g][h] + s);
      }
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
    // A last group may be shorter: its scale is that of what is there.
    std::fill(heads.queries[0][h] + d, heads.queries[0][h] + groups * kKvGroup, 0.0f);
    for (uint32_t g = 0; g < groups && integers; ++g) {
      heads.integer_scales[h][g] =
          quantiseUnit(heads.queries[0][h] + g * kKvGroup, heads.integers[h][g].values).scale;
    }
    std::fill(heads.gathered[h], heads.gathered[h] + d, 0.0f);
    std::fill(heads.sums[h], heads.sums[h] + kN, 0.0f);
    heads.most[h] = kLeast;
  }
  bool in_lanes = false;  // gathered
  const auto turn = [&](bool to_lanes) {
    if (task.v_format == KvFormat::kInt4 && in_lanes != to_lanes) {
      for (uint32_t h = 0; h < n_heads; ++h) {
        to_lanes ? reorder<true>(d, heads.gathered[h]) : reorder<false>(d, heads.gathered[h]);
      }
      in_lanes = to_lanes;
    }
  };
  const View view = viewOf(task, token);
  const BlockFns sink_fns = blockFnsOf(KvFormat::kF16, n_heads);
  const BlockFns key_fns = blockFnsOf(task.k_format, n_heads);
  const BlockFns value_fns = blockFnsOf(task.v_format, n_heads);
  forEachBlock(
      p, splits, view.n_sinks, view.ring_begin, view.n_ring, kMostSlots,
      [&](bool sinks, uint32_t slot, uint32_t, uint32_t count) {
        const Slots keys = slotsOf(p, task.k_format, task.keys, kv_head, sinks, slot);
        const Slots values = slotsOf(p, task.v_format, task.values, kv_head, sinks, slot);
        Rows k = {reinterpret_cast<const uint8_t*>(keys.words), 4 * kvValueWords(keys.format, d),
                  reinterpret_cast<const uint8_t*>(values.words),
                  4 * kvValueWords(values.format, d), count, d};
        const Rows v = {k.ahead, k.ahead_bytes, k.first + static_cast<uint64_t>(count) * k.bytes,
                        k.bytes, count, d};
        turn(!sinks);
        if (keys.scales != nullptr) {
          unpackScales(keys.scales, count, groups, heads.scales);
        }
        (sinks ? sink_fns : key_fns).score(k, sinks, &heads);
        for (uint32_t h = 0; h < n_heads; ++h) {
          soften(0, count, d, &heads.most[h], heads.weights[h], heads.sums[h],
                 heads.gathered[h]);
        }
        if (values.scales != nullptr) {
          unpackScales(values.scales, count, groups, heads.scales);
          scaleWeights(groups, n_heads, &heads);
        }
        (sinks ? sink_fns : value_fns).gather(v, sinks, &heads);
      });
  turn(false);
  for (uint32_t h = 0; h < n_heads; ++h) {
    finish(task, token, first_head + h, splits, heads.most[h], heads.sums[h], heads.gathered[h]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel
HWY_AFTER_NAMESPACE();

#endif  // per target
