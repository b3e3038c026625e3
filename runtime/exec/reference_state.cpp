#include "exec/reference_state.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "base/limits.h"
#include "kv/quantise.h"

namespace oriel_internal {
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

}  // namespace oriel_internal
