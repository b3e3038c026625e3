// Compiled without fused multiply-add, like kv/quantise.cpp: stored values must not depend on the processor.
#include "cpu/ops.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "kv/quantise.h"
#include "kv/window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rope_append.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

/// The first `dims` values of a head; pairs as in RopeAppendPush.
void rotate(const float* head, uint32_t dims, uint32_t pair_stride, const float* pairs,
            float* out) {
  const uint32_t half = dims / 2;
  if (pair_stride == 1) {
    for (uint32_t i = 0; i < half; ++i) {
      const float c = pairs[2 * i];
      const float s = pairs[2 * i + 1];
      const float a = head[2 * i];
      const float b = head[2 * i + 1];
      out[2 * i] = a * c - b * s;
      out[2 * i + 1] = a * s + b * c;
    }
  } else {
    for (uint32_t i = 0; i < half; ++i) {
      const float c = pairs[2 * i];
      const float s = pairs[2 * i + 1];
      const float a = head[i];
      const float b = head[i + half];
      out[i] = a * c - b * s;
      out[i + half] = a * s + b * c;
    }
  }
}

void rotate(const float* head, const RopeAppendPush& p, const float* pairs, float* out) {
  rotate(head, p.rope_dims, p.pair_stride, pairs, out);
  std::copy(head + p.rope_dims, head + p.head_dim, out + p.rope_dims);
}

/// Like hadamard() of kv/quantise.h, four values at a time.
void hadamardFours(float* values, uint32_t n, uint32_t block) {
  if (block < 4) {
    return hadamard(values, n, block);
  }
  const hn::FixedTag<float, 4> four;
  HWY_ALIGN const float signs[8] = {1, -1, 1, -1, 1, 1, -1, -1};
  const auto pairs = hn::Load(four, signs);
  const auto halves = hn::Load(four, signs + 4);
  for (uint32_t i = 0; i < n; i += 4) {
    auto v = hn::LoadU(four, values + i);
    v = hn::Add(hn::Mul(v, pairs), hn::Shuffle2301(v));
    v = hn::Add(hn::Mul(v, halves), hn::Shuffle1032(v));
    hn::StoreU(v, four, values + i);
  }
  for (uint32_t half = 4; half < block; half *= 2) {
    for (uint32_t i = 0; i < n; i += 4) {
      if ((i & half) == 0) {
        const auto a = hn::LoadU(four, values + i);
        const auto b = hn::LoadU(four, values + i + half);
        hn::StoreU(hn::Add(a, b), four, values + i);
        hn::StoreU(hn::Sub(a, b), four, values + i + half);
      }
    }
  }
  const auto scale = hn::Set(four, 1.0f / std::sqrt(static_cast<float>(block)));
  for (uint32_t i = 0; i < n; i += 4) {
    hn::StoreU(hn::Mul(hn::LoadU(four, values + i), scale), four, values + i);
  }
}

/// Like quantiseGroup() of kv/quantise.h for int4, with its sixteen scales in lanes.
uint16_t quantiseInt4Group(const float* values, uint32_t n, uint8_t* codes) {
  constexpr uint32_t kVectors = kInt4Candidates / kN;
  float extreme = 0;
  for (uint32_t i = 0; i < n; ++i) {
    extreme = std::fabs(values[i]) > std::fabs(extreme) ? values[i] : extreme;
  }
  uint16_t bits[kInt4Candidates];
  HWY_ALIGN float scales[kInt4Candidates];
  for (uint32_t k = 0; k < kInt4Candidates; ++k) {
    bits[k] = floatToHalf(extreme * (kInt4Candidate[k] * (1.0f / 2048.0f)));
    scales[k] = halfToFloat(bits[k]);
  }
  HWY_ALIGN float errors[kInt4Candidates];
  for (uint32_t v = 0; v < kVectors; ++v) {
    const VF scale = hn::Load(kF, scales + v * kN);
    const VF size = hn::Abs(scale);
    const auto negative = hn::Lt(scale, hn::Zero(kF));
    VF borders[kInt4Levels];
    for (uint32_t k = 1; k < kInt4Levels; ++k) {
      borders[k] = hn::Mul(size, hn::Set(kF, (int4Level(k - 1) + int4Level(k)) * 0.5f));
    }
    VF error = hn::Zero(kF);
    for (uint32_t i = 0; i < n; ++i) {
      const VF value = hn::Set(kF, values[i]);
      const VF turned = hn::IfThenElse(negative, hn::Neg(value), value);
      VF level = hn::Set(kF, int4Level(0));
      for (uint32_t k = 1; k < kInt4Levels; ++k) {
        level = hn::IfThenElse(hn::Gt(turned, borders[k]), hn::Set(kF, int4Level(k)), level);
      }
      const VF difference = hn::Sub(value, hn::Mul(scale, level));
      error = hn::Add(error, hn::Mul(difference, difference));
    }
    hn::Store(error, kF, errors + v * kN);
  }
  uint32_t best = kInt4Candidates;
  float best_error = INFINITY;
  for (uint32_t k = 0; k < kInt4Candidates; ++k) {
    if (errors[k] < best_error) {
      best_error = errors[k];
      best = k;
    }
  }
  const uint16_t best_bits = best < kInt4Candidates ? bits[best] : 0;
  const float scale = halfToFloat(best_bits);
  const float size = std::fabs(scale);
  uint8_t counts[kKvGroup] = {};
  for (uint32_t k = 1; k < kInt4Levels; ++k) {
    const float border = size * ((int4Level(k - 1) + int4Level(k)) * 0.5f);
    for (uint32_t i = 0; i < n; ++i) {
      const float value = scale < 0 ? -values[i] : values[i];
      counts[i] = static_cast<uint8_t>(counts[i] + (value > border ? 1 : 0));
    }
  }
  std::copy(counts, counts + n, codes);
  return best_bits;
}

void storeLowBits(KvFormat format, const float* values, uint32_t head_dim, uint32_t* words,
                  uint16_t* scales) {
  uint8_t* bytes = reinterpret_cast<uint8_t*>(words);
  const uint32_t n_words = kvValueWords(format, head_dim);
  if (head_dim % 8 != 0) {
    words[n_words - 1] = 0;
  }
  for (uint32_t first = 0; first < head_dim; first += kKvGroup) {
    const uint32_t n = std::min(kKvGroup, head_dim - first);
    if (format == KvFormat::kInt8 && n == kKvGroup) {
      scales[first / kKvGroup] =
          quantiseInt8Group(values + first, reinterpret_cast<int8_t*>(bytes) + first);
      continue;
    }
    uint8_t codes[kKvGroup + 1] = {};
    if (format == KvFormat::kInt8) {
      scales[first / kKvGroup] = quantiseGroup(format, values + first, n, codes);
      std::copy(codes, codes + n, bytes + first);
      continue;
    }
    scales[first / kKvGroup] = quantiseInt4Group(values + first, n, codes);
    for (uint32_t i = 0; i < n; i += 2) {
      bytes[(first + i) / 2] = static_cast<uint8_t>(codes[i] | codes[i + 1] << 4);
    }
  }
}

void multiply(const float* by, uint32_t n, float* values) {
  for (uint32_t i = 0; i < n; ++i) {
    values[i] *= by[i];
  }
}

// Stores a head of keys or values into slot `slot` (sinks first).
void append(const CacheShape& p, KvFormat format, uint32_t head, uint32_t slot, const float* values,
            uint32_t* side) {
  const uint32_t d = p.head_dim;
  const SideLayout layout = sideLayout(format, p);
  if (slot < p.sinks) {
    storeHalves(values, d, side + p.sinkRow(head, slot) * kvValueWords(KvFormat::kF16, d));
    return;
  }
  const uint64_t place = p.ringRow(head, slot - p.sinks);
  uint32_t* words = side + layout.ring_word + place * kvValueWords(format, d);
  if (format == KvFormat::kF16) {
    storeHalves(values, d, words);
    return;
  }
  storeLowBits(format, values, d, words,
               reinterpret_cast<uint16_t*>(side + layout.scales_word) + place * kvGroups(d));
}

void ropeAppend(const RopeAppendTask& task, uint32_t t, uint32_t first, uint32_t last) {
  const RopeAppendPush& p = task.push;
  const uint32_t d = p.head_dim;
  const float* qkv = task.qkv + static_cast<uint64_t>(t) * p.qkv_stride;
  const uint64_t tables = static_cast<uint64_t>(t) * p.rotation_stride;
  const View& view = task.step.view(t, p.view);
  const uint32_t slot = view.slot;
  const CacheShape shape = sessionShape(p, p.n_kv_heads, d, view);
  // Low-bit keys are stored rotated, so their queries are rotated, too. Sinks are f16 and not rotated.
  const bool spread = task.k_format != KvFormat::kF16;
  for (uint32_t h = first; h < last; ++h) {
    const float* head = qkv + h * d;
    if (h < p.n_heads) {
      float* query = task.queries + static_cast<uint64_t>(t) * p.query_stride + 2ull * h * d;
      rotate(head, p, task.step.floats(tables + p.query_rotation), query);
      rotate(head, p, task.step.floats(tables + p.sink_rotation), query + d);
      if (task.norms != nullptr) {
        multiply(task.norms, d, query);
        multiply(task.norms, d, query + d);
      }
      if (spread) {
        hadamardFours(query, d, hadamardBlock(d));
      }
    } else if (h < p.n_heads + p.n_kv_heads) {
      float key[kMaxHeadDim];
      rotate(head, p, task.step.floats(tables + p.key_rotation), key);
      if (task.norms != nullptr) {
        multiply(task.norms + d, d, key);
      }
      if (spread && slot >= p.sinks) {
        hadamardFours(key, d, hadamardBlock(d));
      }
      append(shape, task.k_format, h - p.n_heads, slot, key, task.keys);
    } else {
      append(shape, task.v_format, h - p.n_heads - p.n_kv_heads, slot, head, task.values);
    }
  }
}

void spread(float* values, uint32_t n) { hadamardFours(values, n, hadamardBlock(n)); }

void latentAppend(const LatentAppendTask& task, uint32_t t, uint32_t first, uint32_t last) {
  const LatentAppendPush& p = task.push;
  const bool spreads = task.format != KvFormat::kF16;
  const uint64_t tables = static_cast<uint64_t>(t) * p.rotation_stride;
  const auto turned = [&](const float* from, uint32_t table, float* to) {
    rotate(from, p.rope_dim, p.pair_stride, task.step.floats(tables + table), to);
    if (spreads) {
      spread(to, p.rope_dim);
    }
  };
  for (uint32_t h = first; h < std::min(last, p.n_heads); ++h) {
    const float* head =
        task.heads + static_cast<uint64_t>(t) * p.heads_stride + (h + 1) * p.head_dim - p.rope_dim;
    float* query = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                   static_cast<uint64_t>(h) * (p.latent_dim + 2 * p.rope_dim);
    if (spreads) {
      spread(query, p.latent_dim);
    }
    turned(head, p.query_rotation, query + p.latent_dim);
    turned(head, p.sink_rotation, query + p.latent_dim + p.rope_dim);
  }
  if (last <= p.n_heads) {
    return;
  }
  const float* vector = task.vectors + static_cast<uint64_t>(t) * p.vector_stride + p.vector_first;
  float stored[kMaxLatentDim + kMaxLatentRopeDim];
  std::copy(vector, vector + p.latent_dim, stored);
  if (spreads) {
    spread(stored, p.latent_dim);
  }
  turned(vector + p.latent_dim, p.key_rotation, stored + p.latent_dim);
  const View& view = task.step.view(t, p.view);
  append(sessionShape(p, 1, p.latent_dim + p.rope_dim, view), task.format, 0, view.slot, stored,
         task.memory);
}

void hadamardRow(const HadamardPush& push, float* row) {
  hadamardFours(row, push.cols, push.block);
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {
LatentAppendFn latentAppendKernel(SimdTarget target) {
  return &ORIEL_CPU_PICK(target, latentAppend);
}
HadamardFn hadamardKernel(SimdTarget target) { return &ORIEL_CPU_PICK(target, hadamardRow); }
RopeAppendFn ropeAppendKernel(SimdTarget target) { return &ORIEL_CPU_PICK(target, ropeAppend); }
}  // namespace oriel_internal
#endif
