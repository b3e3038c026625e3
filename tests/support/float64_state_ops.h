// Recurrent states in float64, token by token, from the papers: the gated delta rule (Yang, Kautz and Hatamizadeh 2024),
// the same with decays by key (Kimi Team 2025) and Mamba-2 (Dao and Gu 2024). Shares only push constants with the library: layouts and formulas are implemented a
// second time here. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/half.h"
#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal::test {

using Doubles = std::vector<double>;

inline double softplus64(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }
inline double sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }
inline double gate64(uint32_t gate, double x) {
  return gate == kGateSilu       ? x * sigmoid64(x)
         : gate == kGateSigmoid  ? sigmoid64(x)
         : gate == kGateSoftplus ? softplus64(x)
                                 : softplus64(x) / std::log(2.0);
}

inline Doubles doublesOf(const std::vector<float>& values) {
  return Doubles(values.begin(), values.end());
}

// ---- Inputs of a state ------------------------------------------------------------------------------------

struct Float64Inputs {
  Doubles rows;     ///< [tokens][queries, keys, values, decays, factors]
  Doubles columns;  ///< [taps - 1][channels], after the last token
};

/// `in`: [tokens][in_stride]; `columns`: [taps - 1][channels] before the first token.
inline Float64Inputs float64StateInputs(const StateInputsPush& p, uint32_t n_tokens,
                                        const Doubles& in, const Doubles& columns,
                                        const Doubles& taps, const Doubles& gates) {
  const size_t n_keys = size_t{p.key_heads} * p.key_dim, n_values = size_t{p.heads} * p.value_dim;
  const size_t each = p.by_key != 0 ? p.key_dim : 1, n_decays = p.heads * each;
  const size_t channels = 2 * n_keys + n_values, width = channels + n_decays + p.heads;
  const bool delta = p.delta != 0;
  const size_t first_channel = delta ? 0 : n_values;
  const size_t first_decay = delta ? channels + n_values + p.heads : n_values + channels;
  // Positions of queries, keys and values among the input channels.
  const size_t queries = delta ? 0 : n_values + n_keys;
  const size_t keys = delta ? n_keys : n_values;
  const size_t values = delta ? 2 * n_keys : 0;
  Doubles seen = columns;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const auto row = in.begin() + static_cast<int64_t>(size_t{t} * p.in_stride + first_channel);
    seen.insert(seen.end(), row, row + static_cast<int64_t>(channels));
  }
  Float64Inputs out;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    Doubles y(channels);
    for (size_t c = 0; c < channels; ++c) {
      double sum = p.has_bias != 0 ? taps[channels * p.taps + c] : 0;
      for (size_t j = 0; j < p.taps; ++j) {
        sum += taps[c * p.taps + j] * seen[(t + j) * channels + c];
      }
      y[c] = sum * sigmoid64(sum);
    }
    Doubles row(width);
    for (size_t c = 0; c < n_keys; ++c) {
      row[c] = y[queries + c];
      row[n_keys + c] = y[keys + c];
    }
    for (size_t c = 0; c < n_values; ++c) {
      row[2 * n_keys + c] = y[values + c];
    }
    for (size_t h = 0; delta && h < 2 * size_t{p.key_heads}; ++h) {
      double squares = 0;
      for (size_t i = 0; i < p.key_dim; ++i) {
        squares += row[h * p.key_dim + i] * row[h * p.key_dim + i];
      }
      const double length = std::max(std::sqrt(squares), static_cast<double>(p.eps));
      for (size_t i = 0; i < p.key_dim; ++i) {
        row[h * p.key_dim + i] /= length;
      }
    }
    for (size_t h = 0; h < p.heads; ++h) {
      const size_t at = size_t{t} * p.in_stride + first_decay;
      const double rate = gates[n_decays + h];
      for (size_t i = h * each; i < (h + 1) * each; ++i) {
        const double x = in[at + i] + gates[i];
        row[channels + i] =
            std::exp(p.by_key != 0 ? static_cast<double>(p.least) * sigmoid64(rate * x)
                                   : rate * softplus64(x));
      }
      row[channels + n_decays + h] =
          delta ? sigmoid64(in[at - p.heads + h]) : softplus64(in[at + h] + gates[h]);
    }
    out.rows.insert(out.rows.end(), row.begin(), row.end());
  }
  out.columns.assign(seen.end() - static_cast<int64_t>((p.taps - 1) * channels), seen.end());
  return out;
}

// ---- The recurrence --------------------------------------------------------------------------------------

/// `in`: [tokens][in_stride]; `state`: [heads][value_dim][key_dim], becomes the state after the last token. The
/// result is [tokens][heads * value_dim].
inline Doubles float64StateScan(const StateScanPush& p, uint32_t n_tokens, const Doubles& in,
                                const Doubles& gates, Doubles* state) {
  const size_t n_keys = size_t{p.key_heads} * p.key_dim, n_values = size_t{p.heads} * p.value_dim;
  Doubles out(n_tokens * n_values);
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const double* const row = in.data() + size_t{t} * p.in_stride;
    for (size_t h = 0; h < p.heads; ++h) {
      const size_t shared = p.tiled != 0 ? h % p.key_heads : h / (p.heads / p.key_heads);
      const double* const query = row + shared * p.key_dim;
      const double* const key = row + n_keys + shared * p.key_dim;
      const double* const decays = row + 2 * n_keys + n_values;
      const double factor = decays[(p.by_key != 0 ? p.heads * p.key_dim : p.heads) + h];
      for (size_t i = 0; i < p.value_dim; ++i) {
        double* const s = state->data() + (h * p.value_dim + i) * p.key_dim;
        const double value = row[2 * n_keys + h * p.value_dim + i];
        double known = 0;
        for (size_t n = 0; n < p.key_dim; ++n) {
          s[n] *= decays[p.by_key != 0 ? h * p.key_dim + n : h];
          known += s[n] * key[n];
        }
        const double taken = factor * (p.delta != 0 ? value - known : value);
        double sum = 0;
        for (size_t n = 0; n < p.key_dim; ++n) {
          s[n] += taken * key[n];
          sum += s[n] * query[n];
        }
        out[t * n_values + h * p.value_dim + i] =
            static_cast<double>(p.scale) * sum +
            (p.delta != 0 ? 0 : gates[2 * p.heads + h] * value);
      }
    }
  }
  return out;
}

// ---- Output -------------------------------------------------------------------------------------------------

/// `in`: [tokens][in_stride]; `gates`: [tokens][gate_stride]. The result is [tokens][rows * cols].
inline Doubles float64GatedNorm(const GatedNormPush& p, uint32_t n_tokens, const Doubles& in,
                                const Doubles& gates, const Doubles& weight) {
  Doubles out;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    for (size_t r = 0; r < p.rows; ++r) {
      Doubles x(p.cols), gate(p.cols);
      for (size_t c = 0; c < p.cols; ++c) {
        const size_t of = p.gate_rows != 0 ? r : r * p.cols + c;
        gate[c] = gate64(p.gate, gates[size_t{t} * p.gate_stride + p.gate_first + of]);
        x[c] = in[size_t{t} * p.in_stride + r * p.cols + c] * (p.norm_last != 0 ? gate[c] : 1);
      }
      double squares = 0;
      for (const double value : x) {
        squares += value * value;
      }
      const double length = std::sqrt(squares / p.cols + static_cast<double>(p.eps));
      for (size_t c = 0; c < p.cols; ++c) {
        const double normed = p.has_norm != 0
                                  ? weight[p.weight_rows != 0 ? r * p.cols + c : c] * x[c] / length
                                  : x[c];
        out.push_back(normed * (p.norm_last != 0 ? 1 : gate[c]));
      }
    }
  }
  return out;
}

// ---- Stored matrices -----------------------------------------------------------------------------------------

/// [rows][key_dim] values of a slot that begins at `words`.
inline Doubles unpackState(StateFormat format, const uint32_t* words, uint32_t rows,
                           uint32_t key_dim) {
  const uint32_t bits = format == StateFormat::kF32 ? 32 : format == StateFormat::kF16 ? 16 : 8;
  const uint32_t row_words = (key_dim * bits + 31) / 32, groups = (key_dim + 31) / 32;
  const auto half = [](const uint32_t* halves, uint32_t i) {
    return static_cast<double>(halfToFloat(static_cast<uint16_t>(halves[i / 2] >> (16 * (i % 2)))));
  };
  Doubles values;
  for (uint32_t r = 0; r < rows; ++r) {
    const uint32_t* const row = words + size_t{r} * row_words;
    for (uint32_t i = 0; i < key_dim; ++i) {
      if (format == StateFormat::kF32) {
        values.push_back(static_cast<double>(bitsToFloat(row[i])));
      } else if (format == StateFormat::kF16) {
        values.push_back(half(row, i));
      } else {
        const int code = static_cast<int8_t>(row[i / 4] >> (8 * (i % 4)) & 0xffu);
        values.push_back(code * half(words + size_t{rows} * row_words, r * groups + i / 32));
      }
    }
  }
  return values;
}

/// Random matrices in a format: int8 with a separate scale for each group.
template <typename Random>
std::vector<uint32_t> randomState(StateFormat format, uint32_t rows, uint32_t key_dim,
                                  Random* random) {
  std::vector<uint32_t> words(stateMatrixWords(format, rows, key_dim), 0);
  const uint32_t row_words = stateValueWords(format, key_dim);
  const auto putHalf = [](uint32_t* halves, uint32_t i, float value) {
    halves[i / 2] |= static_cast<uint32_t>(floatToHalf(value)) << (16 * (i % 2));
  };
  for (uint32_t r = 0; r < rows; ++r) {
    uint32_t* const row = words.data() + size_t{r} * row_words;
    for (uint32_t i = 0; i < key_dim; ++i) {
      if (format == StateFormat::kF32) {
        row[i] = floatToBits(random->normal(0.3f));
      } else if (format == StateFormat::kF16) {
        putHalf(row, i, random->normal(0.3f));
      } else {
        row[i / 4] |= ((random->below(255) - 127) & 0xffu) << (8 * (i % 4));
        if (i % 32 == 0) {
          putHalf(words.data() + size_t{rows} * row_words, r * ((key_dim + 31) / 32) + i / 32,
                  0.002f + 0.002f * std::fabs(random->normal()));
        }
      }
    }
  }
  return words;
}

/// Allowed distance of a stored value from `want`, in a row of `key_dim` from `row` on.
inline double storedError(StateFormat format, const double* row, uint32_t i, uint32_t key_dim) {
  if (format == StateFormat::kF32) {
    return 0;
  }
  if (format == StateFormat::kF16) {
    return std::fabs(row[i]) / 2048 + 3e-8;
  }
  double most = 0;
  for (uint32_t n = i / 32 * 32; n < std::min(i / 32 * 32 + 32, key_dim); ++n) {
    most = std::max(most, std::fabs(row[n]));
  }
  return most / 127 * 0.51 + 5e-6;  // half a step, and the scale is a half, maybe subnormal
}

}  // namespace oriel_internal::test
