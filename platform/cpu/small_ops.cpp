#include "cpu/small_ops.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/small_ops.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

void rmsNorm(const RmsNormPush& p, const float* in, const float* weight, float factor, float* out) {
  const uint32_t whole = p.cols / kN * kN;
  for (uint32_t row = 0; row < p.rows; ++row, in += p.cols, out += p.cols) {
    VF sums[4] = {hn::Zero(kF), hn::Zero(kF), hn::Zero(kF), hn::Zero(kF)};
    for (uint32_t c = 0; c < whole; c += kN) {
      const VF x = hn::LoadU(kF, in + c);
      sums[c / kN % 4] = hn::MulAdd(x, x, sums[c / kN % 4]);
    }
    double sum = static_cast<double>(hn::GetLane(
        hn::SumOfLanes(kF, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])))));
    for (uint32_t c = whole; c < p.cols; ++c) {
      sum += static_cast<double>(in[c]) * static_cast<double>(in[c]);
    }
    const float scale =
        static_cast<float>(1.0 / std::sqrt(sum / p.cols + static_cast<double>(p.eps))) * p.scale;
    const VF scale_v = hn::Set(kF, scale);
    const VF factor_v = hn::Set(kF, factor);
    for (uint32_t c = 0; c < whole; c += kN) {
      VF normed = hn::Mul(hn::Mul(hn::LoadU(kF, in + c), scale_v), hn::LoadU(kF, weight + c));
      if (p.accumulate != 0) {
        normed = hn::Add(hn::LoadU(kF, out + c), normed);
      }
      hn::StoreU(hn::Mul(normed, factor_v), kF, out + c);
    }
    for (uint32_t c = whole; c < p.cols; ++c) {
      const float normed = in[c] * scale * weight[c];
      out[c] = (p.accumulate != 0 ? out[c] + normed : normed) * factor;
    }
  }
}

// SiLU is x / (1 + e^-x); GELU has 2 u(x) in place of the x in the exponent (layout.h).
template <bool kGelu>
HWY_INLINE VF activate(VF x) {
  VF y = x;
  if (kGelu) {
    const VF cubed = hn::Mul(hn::Mul(x, x), x);
    y = hn::Mul(hn::Set(kF, 2.0f * kGeluScale), hn::MulAdd(hn::Set(kF, kGeluCubic), cubed, x));
  }
  return hn::Div(x, onePlusExpOfMinus(y));
}

template <bool kGelu>
void gated(const GatedActivationPush& p, const float* in, uint32_t first, uint32_t last,
           float* out) {
  const float* gate = in + p.gate_offset;
  const float* up = in + p.up_offset;
  uint32_t c = first;
  for (; c + kN <= last; c += kN) {
    const VF x = activate<kGelu>(hn::LoadU(kF, gate + c));
    hn::StoreU(hn::Mul(x, hn::LoadU(kF, up + c)), kF, out + c);
  }
  for (; c < last; ++c) {
    out[c] = hn::GetLane(activate<kGelu>(hn::Set(kF, gate[c]))) * up[c];
  }
}

void gatedActivation(const GatedActivationPush& p, const float* in, uint32_t first, uint32_t last,
                     float* out) {
  p.gelu != 0 ? gated<true>(p, in, first, last, out) : gated<false>(p, in, first, last, out);
}

void attentionMerge(const AttentionMergePush& p, const float* in, uint32_t first, uint32_t last,
                    float* out) {
  const uint32_t d = p.head_dim;
  const uint64_t stride = d + kPartialExtra;
  const uint32_t whole = d / kN * kN;
  for (uint32_t h = first; h < last; ++h) {
    const float* parts = in + h * p.splits * stride;
    float most = parts[d];
    for (uint32_t s = 1; s < p.splits; ++s) {
      most = std::max(most, parts[s * stride + d]);
    }
    float* head = out + static_cast<uint64_t>(h) * d;
    std::fill(head, head + d, 0.0f);
    float sum = 0;
    for (uint32_t s = 0; s < p.splits; ++s) {
      const float* part = parts + s * stride;
      if (part[d + 1] == 0) {
        continue;  // a share without slots
      }
      const float weight = hn::GetLane(expOf(hn::Set(kF, part[d] - most)));
      sum += weight * part[d + 1];
      const VF weight_v = hn::Set(kF, weight);
      for (uint32_t c = 0; c < whole; c += kN) {
        hn::StoreU(hn::MulAdd(weight_v, hn::LoadU(kF, part + c), hn::LoadU(kF, head + c)), kF,
                   head + c);
      }
      for (uint32_t c = whole; c < d; ++c) {
        head[c] += weight * part[c];
      }
    }
    const float inverse = 1.0f / sum;
    for (uint32_t c = 0; c < d; ++c) {
      head[c] *= inverse;
    }
  }
}

// One vector of channels, or one channel. Columns are rounded before they are added up, as they are where they
// are stored: so it does not matter whence one comes.
template <class D>
HWY_INLINE void convChannels(D d, const ShortConvTask& task, const float* const* columns,
                             const float* const* inputs, uint32_t c, float* out) {
  constexpr uint32_t kMost = static_cast<uint32_t>(hn::MaxLanes(D()));
  const uint32_t n = task.channels;
  auto sum = hn::Zero(d);
  for (uint32_t j = 0; j < task.taps; ++j) {
    auto column = sum;
    if (columns[j] != nullptr) {
      column = hn::LoadU(d, columns[j] + c);
    } else if (inputs[j] != nullptr) {
      column = hn::Mul(hn::LoadU(d, inputs[j] + c), hn::LoadU(d, inputs[j] + 2ull * n + c));
    } else {
      continue;
    }
    HWY_ALIGN float taps[kMost];
    for (uint32_t i = 0; i < kMost; ++i) {
      taps[i] = task.weights[static_cast<uint64_t>(c + i) * task.taps + j];
    }
    sum = hn::MulAdd(hn::Load(d, taps), column, sum);
    if (j + 1 == task.taps) {
      hn::StoreU(column, d, task.column + c);
    }
  }
  hn::StoreU(hn::Mul(hn::LoadU(d, inputs[task.taps - 1] + n + c), sum), d, out + c);
}

void shortConv(const ShortConvTask& task) {
  const uint32_t whole = task.channels / kN * kN;
  for (uint32_t c = 0; c < whole; c += kN) {
    convChannels(kF, task, task.stored, task.inputs, c, task.out);
  }
  for (uint32_t c = whole; c < task.channels; ++c) {
    convChannels(hn::FixedTag<float, 1>(), task, task.stored, task.inputs, c, task.out);
  }
}

void softCap(float cap, uint32_t n, float* values) {
  const VF cap_v = hn::Set(kF, cap);
  const VF inverse = hn::Set(kF, 1.0f / cap);
  uint32_t c = 0;
  for (; c + kN <= n; c += kN) {
    const VF x = hn::LoadU(kF, values + c);
    hn::StoreU(hn::Mul(cap_v, tanhOf(hn::Mul(x, inverse))), kF, values + c);
  }
  for (; c < n; ++c) {
    values[c] = cap * hn::GetLane(tanhOf(hn::Set(kF, values[c] * (1.0f / cap))));
  }
}

void addBias(const float* bias, uint32_t cols, float* out) {
  for (uint32_t c = 0; c < cols; ++c) {
    out[c] += bias[c];
  }
}

void addWeighted(const float* const* rows, const float* weights, uint32_t n, uint32_t cols,
                 float* out) {
  uint32_t c = 0;
  for (; c + kN <= cols; c += kN) {
    VF sum = hn::Zero(kF);
    for (uint32_t k = 0; k < n; ++k) {
      sum = hn::MulAdd(hn::Set(kF, weights[k]), hn::LoadU(kF, rows[k] + c), sum);
    }
    hn::StoreU(hn::Add(hn::LoadU(kF, out + c), sum), kF, out + c);
  }
  for (; c < cols; ++c) {
    float sum = 0;
    for (uint32_t k = 0; k < n; ++k) {
      sum += weights[k] * rows[k][c];
    }
    out[c] += sum;
  }
}

const SmallKernels kSmallKernels = {&rmsNorm,   &gatedActivation, &attentionMerge, &addBias,
                                    &shortConv, &softCap,         &addWeighted};

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {

ShortConvTask shortConvTask(const ShortConvPush& p, const StepBlock& step, uint32_t row,
                            const float* in, float* rings) {
  const View& view = step.view(row, p.view);
  const uint32_t base = step.token(row).base;
  float* const ring = rings + uint64_t{view.first} * p.channels;
  ShortConvTask task;
  task.channels = p.channels;
  task.taps = p.taps;
  task.column = ring + uint64_t{view.slot} * p.channels;
  for (uint32_t back = 0; back < p.taps; ++back) {
    const uint32_t tap = p.taps - 1 - back;
    if (back == 0 || (back < view.count && back <= row && step.token(row - back).base == base)) {
      task.inputs[tap] = in + uint64_t{row - back} * p.in_stride;
    } else if (back < view.count) {
      const uint64_t slot = (uint64_t{view.begin} + view.count - 1 - back) % view.ring;
      task.stored[tap] = ring + slot * p.channels;
    }
  }
  return task;
}

const SmallKernels& smallKernels(SimdTarget target) {
  return ORIEL_CPU_PICK(target, kSmallKernels);
}
}  // namespace oriel_internal
#endif
