#include "cpu/state.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/state.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/state_inputs-inl.h"
#include "cpu/state_scan-inl.h"
#include "cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

template <bool kSigmoid>
HWY_INLINE VF gateOf(VF x) {
  return kSigmoid ? sigmoidOf(x) : siluOf(x);
}

/// out = in * gate, of `n` values.
template <bool kSigmoid>
void gate(const float* in, const float* gates, uint32_t n, float* out) {
  uint32_t c = 0;
  for (; c + kN <= n; c += kN) {
    const VF by = gateOf<kSigmoid>(hn::LoadU(kF, gates + c));
    hn::StoreU(hn::Mul(hn::LoadU(kF, in + c), by), kF, out + c);
  }
  for (; c < n; ++c) {
    out[c] = in[c] * hn::GetLane(gateOf<kSigmoid>(hn::Set(kF, gates[c])));
  }
}

/// out = norm(in), of one row.
void normRow(const float* in, const float* weight, uint32_t n, float eps, float* out) {
  const float scale =
      static_cast<float>(1.0 / std::sqrt(squaresOf(in, n) / n + static_cast<double>(eps)));
  for (uint32_t c = 0; c < n; ++c) {
    out[c] = in[c] * scale * weight[c];
  }
}

void gatedNorm(const GatedNormPush& p, const float* in, const float* gates, const float* weight,
               float* out) {
  const auto gateRow = p.sigmoid != 0 ? &gate<true> : &gate<false>;
  for (uint32_t r = 0; r < p.rows; ++r, in += p.cols, gates += p.cols, out += p.cols) {
    if (p.has_norm == 0) {
      gateRow(in, gates, p.cols, out);
    } else if (p.norm_last != 0) {
      gateRow(in, gates, p.cols, out);
      normRow(out, weight, p.cols, p.eps, out);
    } else {
      normRow(in, weight, p.cols, p.eps, out);
      gateRow(out, gates, p.cols, out);
    }
    weight += p.has_norm != 0 && p.weight_rows != 0 ? p.cols : 0;
  }
}

const StateKernels kStateKernels = {&stateInputs, &stateScan, &gatedNorm};

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {
const StateKernels& stateKernels(SimdTarget target) {
  return ORIEL_CPU_PICK(target, kStateKernels);
}
}  // namespace oriel_internal
#endif
