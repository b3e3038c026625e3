#include "exec/host_executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/half.h"
#include "kv/quantise.h"
#include "kv/window.h"
#include "plan/codebooks.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kMostValues = kMaxLatentDim + kMaxLatentRopeDim;

/// The memory of token `t`'s session.
template <typename Task>
KvSide memoryOf(const Task& task, uint32_t t) {
  const auto& p = task.push;
  const uint32_t cols = p.latent_dim + p.rope_dim;
  return KvSide(task.format, sessionShape(p, 1, cols, task.step.view(t, p.view)), task.memory);
}

/// Rotates `from` by a table of pairs (cos, sin).
void rotate(const float* from, const LatentAppendPush& p, const float* pairs, float* to) {
  const uint32_t step = p.pair_stride;
  for (uint32_t pair = 0; pair < p.rope_dim / 2; ++pair) {
    const uint32_t i = step == 1 ? 2 * pair : pair;
    const float c = pairs[2 * pair];
    const float s = pairs[2 * pair + 1];
    to[i] = from[i] * c - from[i + step] * s;
    to[i + step] = from[i] * s + from[i + step] * c;
  }
}

void spread(float* values, uint32_t n) { hadamard(values, n, hadamardBlock(n)); }

}  // namespace

void referenceLatentAppend(const ReferenceLatentAppend& task, uint32_t t) {
  const LatentAppendPush& p = task.push;
  const bool rounds = task.format != KvFormat::kF16;
  const auto table = [&](uint32_t word) {
    return task.step.floats(word + static_cast<uint64_t>(t) * p.rotation_stride);
  };
  for (uint32_t h = 0; h < p.n_heads; ++h) {
    const float* const from =
        task.heads + static_cast<uint64_t>(t) * p.heads_stride + (h + 1) * p.head_dim - p.rope_dim;
    float* const latent = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                          static_cast<uint64_t>(h) * (p.latent_dim + 2 * p.rope_dim);
    float* const of_ring = latent + p.latent_dim;
    float* const of_sinks = of_ring + p.rope_dim;
    rotate(from, p, table(p.query_rotation), of_ring);
    rotate(from, p, table(p.sink_rotation), of_sinks);
    if (rounds) {
      spread(latent, p.latent_dim);
      spread(of_ring, p.rope_dim);
      spread(of_sinks, p.rope_dim);
    }
  }
  const float* const vector =
      task.vectors + static_cast<uint64_t>(t) * p.vector_stride + p.vector_first;
  float stored[kMostValues];
  std::copy(vector, vector + p.latent_dim, stored);
  rotate(vector + p.latent_dim, p, table(p.key_rotation), stored + p.latent_dim);
  if (rounds) {
    spread(stored, p.latent_dim);
    spread(stored + p.latent_dim, p.rope_dim);
  }
  KvSide memory = memoryOf(task, t);
  const uint32_t slot = task.step.view(t, p.view).slot;
  slot < p.sinks ? memory.storeSink(0, slot, stored) : memory.storeRing(0, slot - p.sinks, stored);
}

// Online softmax, as in attention over keys and values.
void referenceLatentAttention(const ReferenceLatentAttention& task, uint32_t t, uint32_t head,
                              uint32_t split) {
  const LatentAttentionPush& p = task.push;
  const View& view = task.step.view(t, p.view);
  const KvSide memory = memoryOf(task, t);
  const float* const query = task.queries + static_cast<uint64_t>(t) * p.query_stride +
                             static_cast<uint64_t>(head) * (p.latent_dim + 2 * p.rope_dim);
  float stored[kMostValues];
  float sums[kMaxLatentDim] = {};
  float sum = 0;
  float most = -3.0e38f;
  const uint32_t visible = view.n_sinks + view.count;
  const uint64_t begin = static_cast<uint64_t>(split) * p.split_slots;
  const uint64_t end = std::min<uint64_t>(begin + p.split_slots, visible);
  for (uint64_t i = begin; i < end; ++i) {
    const bool is_sink = i < view.n_sinks;
    if (is_sink) {
      memory.loadSink(0, static_cast<uint32_t>(i), stored);
    } else {
      memory.loadRing(0, static_cast<uint32_t>((view.begin + (i - view.n_sinks)) % view.ring),
                      stored);
    }
    const float* const rotated = query + p.latent_dim + (is_sink ? p.rope_dim : 0);
    float score = 0;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      score += query[c] * stored[c];
    }
    for (uint32_t c = 0; c < p.rope_dim; ++c) {
      score += rotated[c] * stored[p.latent_dim + c];
    }
    score *= p.scale;
    if (score > most) {
      const float shrink = std::exp(most - score);
      sum *= shrink;
      for (uint32_t c = 0; c < p.latent_dim; ++c) {
        sums[c] *= shrink;
      }
      most = score;
    }
    const float weight = std::exp(score - most);
    sum += weight;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      sums[c] += weight * stored[c];
    }
  }
  if (p.splits == 1) {
    float* const out = task.out + static_cast<uint64_t>(t) * p.out_stride + head * p.latent_dim;
    for (uint32_t c = 0; c < p.latent_dim; ++c) {
      out[c] = sums[c] / sum;
    }
    return;
  }
  const uint64_t index = (static_cast<uint64_t>(t) * p.n_heads + head) * p.splits + split;
  float* const out = task.out + index * (p.latent_dim + kPartialExtra);
  std::memcpy(out, sums, p.latent_dim * sizeof(float));
  out[p.latent_dim] = most;
  out[p.latent_dim + 1] = sum;
}

namespace {

double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The place of a channel of the convolution in a token's output.
uint32_t placeOf(const StateColumns& columns, uint32_t channel) {
  if (channel - columns.queries < columns.n_keys) {
    return channel - columns.queries;
  }
  if (channel - columns.keys < columns.n_keys) {
    return columns.n_keys + channel - columns.keys;
  }
  return 2 * columns.n_keys + channel - columns.values;
}

void toUnitLength(float* values, uint32_t n, float eps) {
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += static_cast<double>(values[i]) * values[i];
  }
  const float scale = static_cast<float>(1 / std::max<double>(std::sqrt(sum), eps));
  for (uint32_t i = 0; i < n; ++i) {
    values[i] *= scale;
  }
}

}  // namespace

void StateMatrix::load(const uint32_t* slot, uint32_t row, float* values) const {
  const uint32_t* const words =
      slot + static_cast<uint64_t>(row) * stateValueWords(format_, key_dim_);
  const uint32_t* const scales =
      slot + static_cast<uint64_t>(rows_) * stateValueWords(format_, key_dim_);
  for (uint32_t i = 0; i < key_dim_; ++i) {
    switch (format_) {
      case StateFormat::kF32:
        values[i] = bitsToFloat(words[i]);
        break;
      case StateFormat::kF16:
        values[i] = halfToFloat(static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2))));
        break;
      case StateFormat::kInt8: {
        const uint32_t group = row * kvGroups(key_dim_) + i / kKvGroup;
        const uint32_t code = words[i / 4] >> (8 * (i % 4)) & 0xffu;
        values[i] = halfToFloat(static_cast<uint16_t>(scales[group / 2] >> (16 * (group % 2)))) *
                    kvCodeValue(KvFormat::kInt8, code);
        break;
      }
    }
  }
}

void StateMatrix::store(uint32_t* slot, uint32_t row, const float* values) const {
  const uint32_t row_words = stateValueWords(format_, key_dim_);
  uint32_t* const words = slot + static_cast<uint64_t>(row) * row_words;
  if (format_ == StateFormat::kF32) {
    std::transform(values, values + key_dim_, words, floatToBits);
    return;
  }
  std::fill_n(words, row_words, 0u);
  if (format_ == StateFormat::kF16) {
    for (uint32_t i = 0; i < key_dim_; ++i) {
      words[i / 2] |= static_cast<uint32_t>(floatToHalf(values[i])) << (16 * (i % 2));
    }
    return;
  }
  uint32_t* const scales = slot + static_cast<uint64_t>(rows_) * row_words;
  for (uint32_t first = 0; first < key_dim_; first += kKvGroup) {
    const uint32_t n = std::min(kKvGroup, key_dim_ - first);
    uint8_t codes[kKvGroup];
    const uint32_t scale = quantiseGroup(KvFormat::kInt8, values + first, n, codes);
    const uint32_t group = row * kvGroups(key_dim_) + first / kKvGroup;
    const uint32_t shift = 16 * (group % 2);
    scales[group / 2] = (scales[group / 2] & ~(0xffffu << shift)) | scale << shift;
    for (uint32_t i = 0; i < n; ++i) {
      words[(first + i) / 4] |= static_cast<uint32_t>(codes[i]) << (8 * ((first + i) % 4));
    }
  }
}

void referenceStateInputs(const StateInputsPush& p, uint32_t n_tokens, const float* in,
                          const StepState& state, const float* taps, const float* gates,
                          float* out) {
  const StateColumns columns = stateColumns(p);
  const uint32_t channels = columns.n_channels;
  const uint32_t before = p.taps - 1;
  const uint32_t column_word = p.slot_words - before * channels;
  const auto column = [&](int64_t t, uint32_t channel) -> float {
    if (t >= 0) {
      return in[static_cast<uint64_t>(t) * p.in_stride + columns.channels + channel];
    }
    return state.read == nullptr
               ? 0
               : bitsToFloat(state.read[column_word + (before + t) * channels + channel]);
  };
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const float* const row = in + static_cast<uint64_t>(t) * p.in_stride;
    float* const to = out + static_cast<uint64_t>(t) * p.out_stride;
    for (uint32_t c = 0; c < channels; ++c) {
      double sum = p.has_bias != 0 ? taps[channels * p.taps + c] : 0;
      for (uint32_t j = 0; j < p.taps; ++j) {
        sum += static_cast<double>(taps[c * p.taps + j]) * column(int64_t{t} - before + j, c);
      }
      to[placeOf(columns, c)] = static_cast<float>(sum * sigmoid(sum));
    }
    for (uint32_t h = 0; p.delta != 0 && h < 2 * p.key_heads; ++h) {
      toUnitLength(to + h * p.key_dim, p.key_dim, p.eps);
    }
    float* const decay = to + channels;
    const uint32_t n_decays = stateDecays(p);
    for (uint32_t i = 0; i < n_decays; ++i) {
      const uint32_t h = i / (n_decays / p.heads);
      const double x = double{row[columns.decay + i]} + gates[i];
      const double rate = gates[n_decays + h];
      decay[i] = static_cast<float>(
          std::exp(p.by_key != 0 ? p.least * sigmoid(rate * x) : rate * softplus(x)));
      decay[n_decays + h] =
          static_cast<float>(p.delta != 0 ? sigmoid(row[columns.factor + h]) : softplus(x));
    }
  }
  // Reads all inputs before the first write: with one slot both could be the same.
  for (uint32_t j = 0; j < before; ++j) {
    for (uint32_t c = 0; c < channels; ++c) {
      state.written[column_word + j * channels + c] =
          floatToBits(column(int64_t{n_tokens} - before + j, c));
    }
  }
}

void referenceStateScan(const StateScanPush& p, uint32_t n_tokens, const float* in,
                        const StepState& state, const float* gates, float* out) {
  const StateMatrix matrix(static_cast<StateFormat>(p.format), p.heads * p.value_dim, p.key_dim);
  const uint32_t keys = p.key_heads * p.key_dim;
  const uint32_t values = p.heads * p.value_dim;
  for (uint32_t h = 0; h < p.heads; ++h) {
    const uint32_t key_head = p.tiled != 0 ? h % p.key_heads : h / (p.heads / p.key_heads);
    for (uint32_t i = 0; i < p.value_dim; ++i) {
      const uint32_t row = h * p.value_dim + i;
      float s[kMaxStateDim] = {};
      if (state.read != nullptr) {
        matrix.load(state.read, row, s);
      }
      for (uint32_t t = 0; t < n_tokens; ++t) {
        const float* const token = in + static_cast<uint64_t>(t) * p.in_stride;
        const float* const query = token + key_head * p.key_dim;
        const float* const key = token + keys + key_head * p.key_dim;
        const float value = token[2 * keys + row];
        const float* const decays = token + 2 * keys + values;
        const float factor = decays[stateDecays(p) + h];
        double known = 0;
        for (uint32_t n = 0; n < p.key_dim; ++n) {
          s[n] *= decays[p.by_key != 0 ? h * p.key_dim + n : h];
          known += static_cast<double>(s[n]) * key[n];
        }
        const float taken = factor * (p.delta != 0 ? value - static_cast<float>(known) : value);
        double sum = 0;
        for (uint32_t n = 0; n < p.key_dim; ++n) {
          s[n] += taken * key[n];
          sum += static_cast<double>(s[n]) * query[n];
        }
        const float skip = p.delta == 0 ? gates[2 * p.heads + h] * value : 0;
        out[static_cast<uint64_t>(t) * p.out_stride + row] =
            p.scale * static_cast<float>(sum) + skip;
      }
      matrix.store(state.written, row, s);
    }
  }
}

double gateOf(uint32_t gate, double x) {
  switch (gate) {
    case kGateSigmoid:
      return sigmoid(x);
    case kGateSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case kGateSoftplus2:
      return gateOf(kGateSoftplus, x * std::log(2.0)) / std::log(2.0);
    case kGateStep:
      return x;
    default:
      return x * sigmoid(x);
  }
}

void referenceGatedNorm(const GatedNormPush& p, uint32_t n_tokens, const float* in,
                        const float* gates, const float* weight, float* out) {
  for (uint32_t t = 0; t < n_tokens; ++t) {
    for (uint32_t r = 0; r < p.rows; ++r) {
      const float* const from = in + static_cast<uint64_t>(t) * p.in_stride + r * p.cols;
      float* const to = out + static_cast<uint64_t>(t) * p.out_stride + r * p.cols;
      const float* const gate = gates + static_cast<uint64_t>(t) * p.gate_stride + p.gate_first +
                                (p.gate_rows != 0 ? r : r * p.cols);
      const auto gated = [&](uint32_t c, double x) {
        return x * gateOf(p.gate, gate[p.gate_rows != 0 ? 0 : c]);
      };
      double sum = 0;
      for (uint32_t c = 0; c < p.cols; ++c) {
        const double x = p.norm_last != 0 ? gated(c, from[c]) : from[c];
        sum += x * x;
      }
      const double scale = p.has_norm != 0 ? 1 / std::sqrt(sum / p.cols + p.eps) : 1;
      for (uint32_t c = 0; c < p.cols; ++c) {
        const double w = p.has_norm == 0 ? 1 : weight[p.weight_rows != 0 ? r * p.cols + c : c];
        to[c] = static_cast<float>(gated(c, from[c]) * scale * w);
      }
    }
  }
}

namespace {

constexpr uint32_t kLanes = 8;  // partial sums of a dot product; lets compilers vectorise it
static_assert(kUnit % kLanes == 0, "a unit is whole steps of all lanes");

float sumLanes(const float (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

float lowHalf(uint32_t word) { return halfToFloat(static_cast<uint16_t>(word)); }
float highHalf(uint32_t word) { return halfToFloat(static_cast<uint16_t>(word >> 16)); }

/// One row of a group.
struct Row {
  const uint32_t* quads;
  const uint32_t* sides;

  uint32_t quant(uint32_t word) const { return quads[word / 4 * (4 * kGroupRows) + word % 4]; }
  uint32_t side(uint32_t word) const { return sides[word * kGroupRows]; }
};

// The scale of a unit within its pair's scales.
float pairScale(uint32_t pair, uint32_t unit) {
  return unit % 2 == 0 ? lowHalf(pair) : highHalf(pair);
}

// Byte i of the side words from `word` on.
uint32_t sideByte(const Row& row, uint32_t word, uint32_t i) {
  return row.side(word + i / 4) >> (8 * (i % 4)) & 0xff;
}

// Value i of a unit in a quad of nibbles, in 2-bit quads, in a high-bit word.
uint32_t nibble(const Row& row, uint32_t unit, uint32_t i) {
  return row.quant(4 * unit + i % 16 / 4) >> (8 * (i % 4) + i / 16 * 4) & 15;
}
uint32_t twoBits(uint32_t word, uint32_t i) { return word >> (8 * (i % 4) + i % 16 / 4 * 2) & 3; }
uint32_t highBit(uint32_t word, uint32_t i) { return word >> (8 * (i % 4) + i / 4) & 1; }

/// The values of IQ4 quants.
constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/// Twice the values of MXFP4 quants.
constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The values of codes in the codebooks.
constexpr float kIq2Sizes[3] = {8, 25, 43};
constexpr float kIq3XxsSizes[8] = {4, 12, 20, 28, 36, 44, 52, 62};

// 2^(e - 128); the two smallest are subnormal.
float powerOfTwo(uint32_t e) { return bitsToFloat(e < 2 ? 1u << (21 + e) : (e - 1) << 23); }

// An unsigned float with 4 exponent and 3 mantissa bits. The largest code is not a number and gives 0.
float smallScale(uint32_t byte) {
  const uint32_t e = byte >> 3 & 15;
  const uint32_t m = byte & 7;
  const bool none = (byte & 0x7f) == 0x7f;
  return none ? 0
              : std::ldexp(static_cast<float>(e == 0 ? m : 8 + m),
                           static_cast<int>(e == 0 ? 1 : e) - 10);
}

// Code i of an entry of a codebook.
template <uint32_t kBits>
uint32_t codeOf(const uint32_t* book, uint32_t entry, uint32_t i) {
  return book[entry / 2] >> (16 * (entry % 2) + kBits * i) & ((1u << kBits) - 1);
}

// A sign word stores other data in place of every eighth sign. These signs follow from the parity of the other seven: 1
// if it is odd.
uint32_t insteadOfSigns(uint32_t word) {
  return (word >> 25 & 1) | (word >> 26 & 2) | (word >> 27 & 4) | (word >> 28 & 8);
}
uint32_t evenSigns(uint32_t word) {
  uint32_t signs = word & 0x55ffffffu;
  for (uint32_t l = 0; l < 4; ++l) {
    uint32_t odd = 0;
    for (uint32_t i = 8 * l; i < 8 * l + 7; ++i) {
      odd ^= highBit(signs, i);
    }
    signs |= odd << (25 + 2 * l);
  }
  return signs;
}

// Every product below is exact in float32, so fusing it with a sum changes nothing.
template <typename Quant>
void scaled(float scale, const Quant& quant, float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int32_t>(quant(i)));
  }
}

template <typename Quant>
void scaledPlus(float scale, float add, const Quant& quant, float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int32_t>(quant(i))) + add;
  }
}

float withSign(float size, uint32_t signs, uint32_t i) {
  return highBit(signs, i) != 0 ? -size : size;
}

// IQ2: `index` of eight values and `scale` of a half of the unit.
template <typename Index, typename Scale>
void eights(const uint32_t* book, float d, uint32_t signs, const Index& index, const Scale& scale,
            float (&out)[kUnit]) {
  for (uint32_t i = 0; i < kUnit; ++i) {
    const float size = kIq2Sizes[codeOf<2>(book, index(i / 8), i % 8)];
    out[i] = d * 0.125f * static_cast<float>(2 * scale(i / 16) + 1) * withSign(size, signs, i);
  }
}

void unpackIq2(WeightType type, const Row& row, uint32_t unit, float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t words = weightGeometry(type, 256).side;
  const uint32_t at = unit / 8 * words;
  const float d = lowHalf(row.side(at));
  const uint32_t signs = row.side(at + words - 8 + u);
  const auto scale16 = [&](uint32_t half) {
    return row.side(at + 1 + u / 4) >> (8 * (u % 4) + 4 * half) & 15;
  };
  const auto low = [&](uint32_t word, uint32_t l) { return sideByte(row, at + word + u, l); };
  switch (type) {
    case WeightType::kIq2Xxs:
      return eights(
          kIq2XxsGrid, d, evenSigns(signs), [&](uint32_t l) { return low(1, l); },
          [&](uint32_t) { return insteadOfSigns(signs); }, out);
    case WeightType::kIq2Xs:
      return eights(
          kIq2XsGrid, d, evenSigns(signs),
          [&](uint32_t l) { return low(3, l) | (insteadOfSigns(signs) >> l & 1) << 8; }, scale16,
          out);
    default:
      return eights(
          kIq2SGrid, d, signs,
          [&](uint32_t l) { return low(3, l) | (sideByte(row, at + 11, u) >> (2 * l) & 3) << 8; },
          scale16, out);
  }
}

void unpackIq3(WeightType type, const Row& row, uint32_t unit, float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t words = weightGeometry(type, 256).side;
  const uint32_t at = unit / 8 * words;
  const float d = lowHalf(row.side(at));
  const uint32_t signs = row.side(at + words - 8 + u);
  for (uint32_t i = 0; i < kUnit; ++i) {
    if (type == WeightType::kIq3Xxs) {
      const float size =
          kIq3XxsSizes[codeOf<3>(kIq3XxsGrid, sideByte(row, at + 1 + 2 * u, i / 4), i % 4)];
      out[i] = d * 0.25f * static_cast<float>(2 * insteadOfSigns(signs) + 1) *
               withSign(size, evenSigns(signs), i);
      continue;
    }
    const uint32_t high = sideByte(row, at + 18, u) >> (i / 4) & 1;
    const uint32_t index = sideByte(row, at + 2 + 2 * u, i / 4) | high << 8;
    const uint32_t scale = row.side(at + 1) >> (4 * u) & 15;
    const float size = static_cast<float>(2 * codeOf<3>(kIq3SGrid, index, i % 4) + 1);
    out[i] = d * static_cast<float>(2 * scale + 1) * withSign(size, signs, i);
  }
}

// Types with blocks of 256 values; `u` is the unit within its block.
void unpack256(WeightType type, const Row& row, uint32_t unit, uint32_t side_words,
               float (&out)[kUnit]) {
  const uint32_t u = unit % 8;
  const uint32_t at = unit / 8 * side_words;  // in the block's side words
  const float d = lowHalf(row.side(at));
  const float dmin = highHalf(row.side(at));
  const auto twoBitQuant = [&](uint32_t i) { return twoBits(row.quant(2 * unit + i / 16), i); };
  // Scales of the two halves of the unit, as signed bytes.
  const auto scale16 = [&](uint32_t i) {
    return static_cast<float>(static_cast<int8_t>(sideByte(row, at + 1, 2 * u + i / 16)));
  };
  switch (type) {
    case WeightType::kQ2_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t both = sideByte(row, at + 1, 2 * u + i / 16);
        out[i] = d * static_cast<float>(both & 15) * static_cast<float>(twoBitQuant(i)) -
                 dmin * static_cast<float>(both >> 4);
      }
      return;
    case WeightType::kQ3_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t q = twoBitQuant(i) + 4 * highBit(row.side(at + 5 + u), i);
        out[i] = d * scale16(i) * static_cast<float>(static_cast<int32_t>(q) - 4);
      }
      return;
    case WeightType::kQ6_K:
      for (uint32_t i = 0; i < kUnit; ++i) {
        const uint32_t q =
            nibble(row, unit, i) + 16 * twoBits(row.side(at + 5 + 2 * u + i / 16), i);
        out[i] = d * scale16(i) * static_cast<float>(static_cast<int32_t>(q) - 32);
      }
      return;
    case WeightType::kIq4Xs:
      return scaled(
          d * static_cast<float>(static_cast<int8_t>(sideByte(row, at + 1, u))),
          [&](uint32_t i) { return kIq4Values[nibble(row, unit, i)]; }, out);
    default: {  // Q4_K, Q5_K
      const uint32_t high = type == WeightType::kQ5_K ? row.side(at + 5 + u) : 0;
      return scaledPlus(
          d * static_cast<float>(sideByte(row, at + 1, u)),
          -dmin * static_cast<float>(sideByte(row, at + 3, u)),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i); }, out);
    }
  }
}

}  // namespace

void WeightRows::unpack(uint32_t r, uint32_t unit, float (&out)[kUnit]) const {
  const uint32_t* group = words + static_cast<uint64_t>(r / kGroupRows) * group_words;
  const Row row = {group + 4 * (r % kGroupRows), group + side_word + r % kGroupRows};
  switch (type) {
    case WeightType::kF32:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = bitsToFloat(row.quant(unit * kUnit + i));
      }
      return;
    case WeightType::kF16:
      for (uint32_t i = 0; i < kUnit; i += 2) {
        const uint32_t pair = row.quant((unit * kUnit + i) / 2);
        out[i] = lowHalf(pair);
        out[i + 1] = highHalf(pair);
      }
      return;
    case WeightType::kBf16:
      for (uint32_t i = 0; i < kUnit; i += 2) {
        const uint32_t pair = row.quant((unit * kUnit + i) / 2);
        out[i] = bitsToFloat(pair << 16);
        out[i + 1] = bitsToFloat(pair & 0xffff0000u);
      }
      return;
    case WeightType::kQ8_0:
      return scaled(
          pairScale(row.side(unit / 2), unit),
          [&](uint32_t i) {
            const uint32_t word = row.quant(8 * unit + i / 4);
            return static_cast<int8_t>(word >> (8 * (i % 4)) & 255);
          },
          out);
    case WeightType::kQ4_0:
      return scaled(
          pairScale(row.side(unit / 2), unit), [&](uint32_t i) { return nibble(row, unit, i) - 8; },
          out);
    case WeightType::kIq4Nl:
      return scaled(
          pairScale(row.side(unit / 2), unit),
          [&](uint32_t i) { return kIq4Values[nibble(row, unit, i)]; }, out);
    case WeightType::kQ5_0: {
      const uint32_t at = unit / 2 * 3;
      const uint32_t high = row.side(at + unit % 2);
      return scaled(
          pairScale(row.side(at + 2), unit),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i) - 16; }, out);
    }
    case WeightType::kQ4_1:
      return scaledPlus(
          lowHalf(row.side(unit)), highHalf(row.side(unit)),
          [&](uint32_t i) { return nibble(row, unit, i); }, out);
    case WeightType::kQ5_1: {
      const uint32_t high = row.side(2 * unit);
      const uint32_t both = row.side(2 * unit + 1);
      return scaledPlus(
          lowHalf(both), highHalf(both),
          [&](uint32_t i) { return nibble(row, unit, i) + 16 * highBit(high, i); }, out);
    }
    case WeightType::kMxfp4:
      return scaled(
          powerOfTwo(sideByte(row, 0, unit)),
          [&](uint32_t i) { return kMxfp4Values[nibble(row, unit, i)]; }, out);
    case WeightType::kNvfp4:
      for (uint32_t i = 0; i < kUnit; ++i) {
        out[i] = smallScale(sideByte(row, 0, 2 * unit + i / 16)) * 0.5f *
                 static_cast<float>(kMxfp4Values[nibble(row, unit, i)]);
      }
      return;
    case WeightType::kQ1_0:
      return scaled(
          pairScale(row.side(unit / 8 * 9), unit / 4),
          [&](uint32_t i) { return 2 * highBit(row.side(unit / 8 * 9 + 1 + unit % 8), i) - 1; },
          out);
    case WeightType::kQ2_0:
    case WeightType::kTq2_0:
    case WeightType::kTq1_0:
      return scaled(
          pairScale(row.side(unit / 4), unit / 2),
          [&](uint32_t i) { return twoBits(row.quant(2 * unit + i / 16), i) - 1; }, out);
    case WeightType::kIq2Xxs:
    case WeightType::kIq2Xs:
    case WeightType::kIq2S:
      return unpackIq2(type, row, unit, out);
    case WeightType::kIq3Xxs:
    case WeightType::kIq3S:
      return unpackIq3(type, row, unit, out);
    default:
      return unpack256(type, row, unit, weightGeometry(type, 256).side, out);
  }
}

void WeightRows::dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
                      float* products) const {
  float lanes[kTokenBlock][kLanes] = {};
  float values[kUnit];
  for (uint32_t unit = 0; unit < units; ++unit) {
    unpack(row, unit, values);
    for (uint32_t t = 0; t < n; ++t) {
      const float* in = x + static_cast<uint64_t>(t) * stride + unit * kUnit;
      for (uint32_t i = 0; i < kUnit; i += kLanes) {
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          lanes[t][lane] += values[i + lane] * in[i + lane];
        }
      }
    }
  }
  for (uint32_t t = 0; t < n; ++t) {
    products[t] = sumLanes(lanes[t]);
  }
}

}  // namespace oriel_internal
