// Inputs of a recurrent state: convolution, SiLU, lengths, decays and factors. Bytes moved: a token's inputs once
// per tap, from the cache except for the first tap. Compiled once per target.
#if defined(ORIEL_CPU_STATE_INPUTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ORIEL_CPU_STATE_INPUTS_INL_H_
#undef ORIEL_CPU_STATE_INPUTS_INL_H_
#else
#define ORIEL_CPU_STATE_INPUTS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "cpu/kernels.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

/// Sum of squares; values after the last whole vector are summed in double.
inline double squaresOf(const float* values, uint32_t n) {
  const uint32_t whole = n / kN * kN;
  VF sums[4] = {hn::Zero(kF), hn::Zero(kF), hn::Zero(kF), hn::Zero(kF)};
  for (uint32_t i = 0; i < whole; i += kN) {
    const VF x = hn::LoadU(kF, values + i);
    sums[i / kN % 4] = hn::MulAdd(x, x, sums[i / kN % 4]);
  }
  double sum = static_cast<double>(hn::GetLane(
      hn::SumOfLanes(kF, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])))));
  for (uint32_t i = whole; i < n; ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

/// The channels of one part: their place among all channels, and in the output.
struct Channels {
  uint32_t first;
  uint32_t count;
  uint32_t out;
  bool unit_length;
};

inline Channels channelsOf(const StateInputsPush& p, uint32_t part) {
  const StateColumns columns = stateColumns(p);
  const uint32_t of_keys = 2 * p.key_heads;
  if (part >= of_keys) {
    const uint32_t first = (part - of_keys) * p.value_dim;
    return {columns.values + first, p.value_dim, 2 * columns.n_keys + first, false};
  }
  const bool is_key = part >= p.key_heads;
  const uint32_t first = (part - (is_key ? p.key_heads : 0)) * p.key_dim;
  return {(is_key ? columns.keys : columns.queries) + first, p.key_dim,
          (is_key ? columns.n_keys : 0) + first, p.delta != 0};
}

/// The inputs of the convolution, by token; earlier tokens are -1, -2 .. 1 - taps.
class ColumnSource {
 public:
  explicit ColumnSource(const StateInputsTask& task)
      : in_(task.in + stateColumns(task.push).channels),
        stride_(task.push.in_stride),
        channels_(stateColumns(task.push).n_channels),
        // Columns are the last words of a slot.
        end_(task.state.read == nullptr
                 ? nullptr
                 : reinterpret_cast<const float*>(task.state.read) + task.push.slot_words) {}

  /// Null: zeros.
  const float* at(int64_t token) const {
    return token >= 0        ? in_ + static_cast<uint64_t>(token) * stride_
           : end_ == nullptr ? nullptr
                             : end_ + token * static_cast<int64_t>(channels_);
  }

 private:
  const float* in_;
  uint64_t stride_;
  uint32_t channels_;
  const float* end_;
};

/// Taps of kN channels from `weights` on, channel by channel.
HWY_INLINE void loadTaps(const float* weights, uint32_t taps, VF* out) {
  if (taps == 4) {
    hn::LoadInterleaved4(kF, weights, out[0], out[1], out[2], out[3]);
    return;
  }
  for (uint32_t j = 0; j < taps; ++j) {
    HWY_ALIGN float lanes[kN];
    for (uint32_t i = 0; i < kN; ++i) {
      lanes[i] = weights[i * taps + j];
    }
    out[j] = hn::Load(kF, lanes);
  }
}

/// Tokens that share taps: few, so that their rows stay in the cache.
constexpr uint32_t kConvTokens = 4;

/// Channels of `part` of tokens begin .. end - 1, at most kConvTokens.
inline void convolveSome(const StateInputsTask& task, const Channels& part, uint32_t begin,
                         uint32_t end) {
  const StateInputsPush& p = task.push;
  const ColumnSource source(task);
  const uint32_t before = p.taps - 1;
  const uint32_t n = end - begin;
  const float* rows[kConvTokens + kMaxConvTaps - 1];  // of token begin - before on
  bool all = true;
  for (uint32_t i = 0; i < n + before; ++i) {
    rows[i] = source.at(int64_t{begin} + i - before);
    all = all && rows[i] != nullptr;
    rows[i] += rows[i] != nullptr ? part.first : 0;
  }
  const float* const taps = task.taps + static_cast<uint64_t>(part.first) * p.taps;
  const float* const bias =
      p.has_bias == 0
          ? nullptr
          : task.taps + static_cast<uint64_t>(stateColumns(p).n_channels) * p.taps + part.first;
  float* const out = task.out + static_cast<uint64_t>(begin) * p.out_stride + part.out;
  uint32_t c = 0;
  for (; c + kN <= part.count; c += kN) {
    VF tap[kMaxConvTaps];
    loadTaps(taps + static_cast<uint64_t>(c) * p.taps, p.taps, tap);
    const VF start = bias == nullptr ? hn::Zero(kF) : hn::LoadU(kF, bias + c);
    for (uint32_t t = 0; t < n; ++t) {
      VF sum = start;
      for (uint32_t j = 0; j < p.taps; ++j) {
        if (all || rows[t + j] != nullptr) {
          sum = hn::MulAdd(tap[j], hn::LoadU(kF, rows[t + j] + c), sum);
        }
      }
      hn::StoreU(siluOf(sum), kF, out + static_cast<uint64_t>(t) * p.out_stride + c);
    }
  }
  for (; c < part.count; ++c) {
    for (uint32_t t = 0; t < n; ++t) {
      float sum = bias == nullptr ? 0 : bias[c];
      for (uint32_t j = 0; j < p.taps; ++j) {
        sum += rows[t + j] == nullptr
                   ? 0
                   : taps[static_cast<uint64_t>(c) * p.taps + j] * rows[t + j][c];
      }
      out[static_cast<uint64_t>(t) * p.out_stride + c] = hn::GetLane(siluOf(hn::Set(kF, sum)));
    }
  }
}

inline void convolve(const StateInputsTask& task, const Channels& part, uint32_t begin,
                     uint32_t end) {
  const StateInputsPush& p = task.push;
  for (uint32_t t = begin; t < end; t += kConvTokens) {
    convolveSome(task, part, t, std::min(end, t + kConvTokens));
  }
  for (uint32_t t = begin; part.unit_length && t < end; ++t) {
    float* const head = task.out + static_cast<uint64_t>(t) * p.out_stride + part.out;
    const double length =
        std::max(std::sqrt(squaresOf(head, part.count)), static_cast<double>(p.eps));
    const float inverse = static_cast<float>(1.0 / length);
    for (uint32_t i = 0; i < part.count; ++i) {
      head[i] *= inverse;
    }
  }
}

inline void keepColumns(const StateInputsTask& task, const Channels& part) {
  const StateInputsPush& p = task.push;
  const ColumnSource source(task);
  const uint32_t channels = stateColumns(p).n_channels;
  float* to = reinterpret_cast<float*>(task.state.written) + p.slot_words -
              static_cast<uint64_t>(p.taps - 1) * channels + part.first;
  for (int64_t t = int64_t{task.n_tokens} - p.taps + 1; t < int64_t{task.n_tokens};
       ++t, to += channels) {
    const float* const row = source.at(t);
    if (row == nullptr) {
      std::fill(to, to + part.count, 0.0f);
    } else {
      std::copy(row + part.first, row + part.first + part.count, to);
    }
  }
}

/// ln(1 + e^x) = max(x, 0) + ln(1 + y) with y = e^-|x|, and ln(1 + y) = 2 artanh z with z = y / (2 + y) <= 1 / 3, by its
/// series to z^15.
HWY_INLINE VF softplusOf(VF x) {
  const VF y = expOf(hn::Neg(hn::Abs(x)));
  const VF z = hn::Div(y, hn::Add(y, hn::Set(kF, 2.0f)));
  const VF squared = hn::Mul(z, z);
  VF series = hn::Set(kF, 2.0f / 15);
  for (const float term : {2.0f / 13, 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3, 2.0f}) {
    series = hn::MulAdd(series, squared, hn::Set(kF, term));
  }
  return hn::MulAdd(series, z, hn::Max(x, hn::Zero(kF)));
}

inline void decaysAndFactors(const StateInputsTask& task, uint32_t begin, uint32_t end) {
  const StateInputsPush& p = task.push;
  const StateColumns columns = stateColumns(p);
  const float* const rates = task.gates + stateDecays(p);
  for (uint32_t t = begin; t < end; ++t) {
    const float* const in = task.in + static_cast<uint64_t>(t) * p.in_stride;
    float* const decay = task.out + static_cast<uint64_t>(t) * p.out_stride + columns.n_channels;
    float* const factor = decay + stateDecays(p);
    for (uint32_t h = 0; h < p.heads; h += kN) {
      const uint32_t n = p.heads - h;
      const VF step =
          softplusOf(hn::Add(loadSome(in + columns.decay + h, n), loadSome(task.gates + h, n)));
      storeSome(expOf(hn::Mul(step, loadSome(rates + h, n))), n, decay + h);
      storeSome(p.delta != 0 ? sigmoidOf(loadSome(in + columns.factor + h, n)) : step, n,
                factor + h);
    }
    if (p.by_key != 0) {  // in place of those by head
      decaysByKey(p, in + columns.decay, task.gates, decay);
    }
  }
}

inline void stateInputs(const StateInputsTask& task, uint32_t first, uint32_t last, uint32_t begin,
                        uint32_t end) {
  const uint32_t gates = stateInputParts(task.push) - 1;
  for (uint32_t i = first; i < std::min(last, gates); ++i) {
    const Channels part = channelsOf(task.push, i);
    convolve(task, part, begin, end);
    if (end == task.n_tokens) {
      keepColumns(task, part);
    }
  }
  if (last > gates) {
    decaysAndFactors(task, begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#endif  // per target
