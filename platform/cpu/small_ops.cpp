#include "cpu/ops.h"

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
  if (p.centred != 0) {
    return layerNorm(p, in, weight, factor, out);
  }
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
    weight += p.weight_rows != 0 ? p.cols : 0;
  }
}

/// The error function, to 5e-7: Abramowitz and Stegun 7.1.28 from 1/2 on, its series below.
HWY_INLINE VF erfOf(VF x) {
  const auto set = [](float value) { return hn::Set(kF, value); };
  const VF a = hn::Abs(x);
  VF p = hn::MulAdd(set(0.0000430638f), a, set(0.0002765672f));
  p = hn::MulAdd(p, a, set(0.0001520143f));
  p = hn::MulAdd(p, a, set(0.0092705272f));
  p = hn::MulAdd(p, a, set(0.0422820123f));
  p = hn::MulAdd(p, a, set(0.0705230784f));
  p = hn::MulAdd(p, a, set(1.0f));
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  const VF far = hn::CopySign(hn::Sub(set(1.0f), hn::Div(set(1.0f), hn::Mul(p, p))), x);
  const VF s = hn::Mul(x, x);
  VF q = hn::MulAdd(set(0.00522398f), s, set(-0.02686617f));
  q = hn::MulAdd(q, s, set(0.11283792f));
  q = hn::MulAdd(q, s, set(-0.37612639f));
  q = hn::MulAdd(q, s, set(1.12837917f));
  return hn::IfThenElse(hn::Lt(a, set(0.5f)), hn::Mul(q, x), far);
}

// layout.h has the formulas.
HWY_INLINE VF activate(const GatedActivationPush& p, VF x) {
  const VF positive = hn::Max(x, hn::Zero(kF));
  switch (p.activation) {
    case kGelu: {
      const VF cubed = hn::Mul(hn::Mul(x, x), x);
      const VF u = hn::MulAdd(hn::Set(kF, kGeluCubic), cubed, x);
      return hn::Div(x, onePlusExpOfMinus(hn::Mul(hn::Set(kF, 2.0f * kGeluScale), u)));
    }
    case kGeluErf: {
      const VF half = hn::Mul(hn::Set(kF, 0.5f), x);
      return hn::MulAdd(half, erfOf(hn::Mul(x, hn::Set(kF, 0.70710678f))), half);
    }
    case kRelu:
      return positive;
    case kReluSquared:
      return hn::Mul(positive, positive);
    case kClampedSilu: {
      const VF y = hn::Min(x, hn::Set(kF, p.a));
      return hn::Div(y, onePlusExpOfMinus(hn::Mul(hn::Set(kF, p.b), y)));
    }
    case kXielu: {
      const VF linear = hn::Mul(hn::Set(kF, p.c), x);
      const VF power = hn::Sub(expOf(hn::Min(x, hn::Set(kF, p.d))), hn::Add(x, hn::Set(kF, 1.0f)));
      const VF below = hn::MulAdd(power, hn::Set(kF, p.b), linear);
      const VF above = hn::MulAdd(hn::Mul(x, x), hn::Set(kF, p.a), linear);
      return hn::IfThenElse(hn::Gt(x, hn::Zero(kF)), above, below);
    }
    case kTanh:
      return tanhOf(x);
    default:
      return siluOf(x);
  }
}

void gatedActivation(const GatedActivationPush& p, const float* in, uint32_t first, uint32_t last,
                     float* out) {
  const float* gate = in + p.gate_offset;
  const float* up = in + p.up_offset;
  const VF limit = hn::Set(kF, p.a);
  for (uint32_t c = first; c < last; c += kN) {
    VF x = hn::Mul(activate(p, loadSome(gate + c, last - c)), hn::Set(kF, p.scale));
    if (p.plain == 0) {
      VF by = loadSome(up + c, last - c);
      if (p.activation == kClampedSilu) {
        by = hn::Add(hn::Clamp(by, hn::Neg(limit), limit), hn::Set(kF, 1.0f));
      }
      x = hn::Mul(x, by);
    }
    storeSome(x, last - c, out + c);
  }
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

// One vector of channels, or one channel. Columns are rounded before they are summed, exactly like stored
// columns, so that stored and new columns give equal results.
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
    if (j + 1 == task.taps && task.column != nullptr) {
      hn::StoreU(column, d, task.column + c);
    }
  }
  hn::StoreU(hn::Mul(hn::LoadU(d, task.gates + c), sum), d, out + c);
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

// One loop for all kinds: x becomes x * by + number * values within two limits.
void change(const float* values, uint32_t change, float number, uint32_t cols, float* out) {
  const bool between = change == kChangeBetween;
  const bool clamps = between || change == kChangeClamp;
  const bool each = change == kChangeTimesEach;
  const bool adds = !clamps && !each && change != kChangeTimes;
  const VF least = hn::Set(kF, between ? values[0] : clamps ? -number : -HUGE_VALF);
  const VF most = hn::Set(kF, between ? values[1] : clamps ? number : HUGE_VALF);
  const VF by = hn::Set(kF, change == kChangeTimes ? values[0] : 1);
  const VF weight = hn::Set(kF, change == kChangeGated ? number : 1);
  for (uint32_t c = 0; c < cols; c += kN) {
    const uint32_t left = cols - c;
    const VF own = adds || each ? loadSome(values + c, left) : hn::Zero(kF);
    const VF x = hn::Mul(loadSome(out + c, left), each ? own : by);
    const VF sum = adds ? hn::MulAdd(own, weight, x) : x;
    storeSome(hn::Min(most, hn::Max(least, sum)), left, out + c);  // keeps NaN
  }
}

void addWeighted(const float* const* rows, const float* weights, uint32_t n, uint32_t cols,
                 bool accumulate, float* out) {
  uint32_t c = 0;
  for (; c + kN <= cols; c += kN) {
    VF sum = hn::Zero(kF);
    for (uint32_t k = 0; k < n; ++k) {
      sum = hn::MulAdd(hn::Set(kF, weights[k]), hn::LoadU(kF, rows[k] + c), sum);
    }
    hn::StoreU(accumulate ? hn::Add(hn::LoadU(kF, out + c), sum) : sum, kF, out + c);
  }
  for (; c < cols; ++c) {
    float sum = accumulate ? out[c] : 0;
    for (uint32_t k = 0; k < n; ++k) {
      sum += weights[k] * rows[k][c];
    }
    out[c] = sum;
  }
}

const SmallKernels kSmallKernels = {&rmsNorm,   &gatedActivation, &attentionMerge, &change,
                                    &shortConv, &softCap,         &addWeighted};

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {

void layerNorm(const RmsNormPush& p, const float* in, const float* weight, float factor,
               float* out) {
  for (uint32_t row = 0; row < p.rows; ++row, in += p.cols, out += p.cols) {
    double mean = 0;
    for (uint32_t c = 0; c < p.cols; ++c) {
      mean += static_cast<double>(in[c]);
    }
    mean /= p.cols;
    double sum = 0;
    for (uint32_t c = 0; c < p.cols; ++c) {
      const double x = static_cast<double>(in[c]) - mean;
      sum += x * x;
    }
    const float scale =
        static_cast<float>(1.0 / std::sqrt(sum / p.cols + static_cast<double>(p.eps))) * p.scale;
    const float less = static_cast<float>(mean);
    for (uint32_t c = 0; c < p.cols; ++c) {
      const float normed = (in[c] - less) * scale * weight[c];
      out[c] = (p.accumulate != 0 ? out[c] + normed : normed) * factor;
    }
    weight += p.weight_rows != 0 ? p.cols : 0;
  }
}

ShortConvTask shortConvTask(const ShortConvPush& p, const StepBlock& step, uint32_t row,
                            const float* in, float* rings) {
  const View& view = step.view(row, p.view);
  const uint32_t base = step.token(row).base;
  float* const ring = rings + uint64_t{view.first} * p.channels;
  ShortConvTask task;
  task.channels = p.channels;
  task.taps = p.taps;
  task.column = p.centred != 0 ? nullptr : ring + uint64_t{view.slot} * p.channels;
  task.gates = in + uint64_t{row} * p.in_stride + p.channels;
  for (uint32_t tap = 0; tap < p.taps && p.centred != 0; ++tap) {
    const int64_t by = int64_t{tap} - (p.taps - 1) / 2;
    const int64_t place = view.slot + by;
    if (place >= 0 && place < view.count) {
      task.inputs[tap] = in + (row + by) * p.in_stride;
    }
  }
  if (p.centred != 0) {
    return task;
  }
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
