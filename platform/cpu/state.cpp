#include "cpu/kernels.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "exec/host_executor.h"

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

/// out = in * gate, of `n` values.
void gate(const GatedNormPush& p, const float* in, const float* gates, uint32_t n, float* out) {
  if (p.gate > kGateSigmoid || p.gate_rows != 0) {
    return gateRow(p, in, gates, n, out);
  }
  uint32_t c = 0;
  for (; c < n; c += kN) {
    const VF x = loadSome(gates + c, n - c);
    const VF by = p.gate == kGateSigmoid ? sigmoidOf(x) : siluOf(x);
    storeSome(hn::Mul(loadSome(in + c, n - c), by), n - c, out + c);
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
  const uint32_t gate_step = p.gate_rows != 0 ? 1 : p.cols;
  for (uint32_t r = 0; r < p.rows; ++r, in += p.cols, gates += gate_step, out += p.cols) {
    if (p.has_norm == 0) {
      gate(p, in, gates, p.cols, out);
    } else if (p.norm_last != 0) {
      gate(p, in, gates, p.cols, out);
      normRow(out, weight, p.cols, p.eps, out);
    } else {
      normRow(in, weight, p.cols, p.eps, out);
      gate(p, out, gates, p.cols, out);
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

void decaysByKey(const StateInputsPush& p, const float* in, const float* gates, float* decays) {
  const float* rate = gates + stateDecays(p);
  for (uint32_t h = 0; h < p.heads; ++h, ++rate) {
    for (uint32_t i = h * p.key_dim; i < (h + 1) * p.key_dim; ++i) {
      decays[i] = std::exp(p.least / (1 + std::exp(-*rate * (in[i] + gates[i]))));
    }
  }
}

void gateRow(const GatedNormPush& p, const float* in, const float* gates, uint32_t n, float* out) {
  const bool shared = p.gate_rows != 0;
  const double of_all = shared ? gateOf(p.gate, static_cast<double>(gates[0])) : 0;
  for (uint32_t c = 0; c < n; ++c) {
    out[c] = static_cast<float>(static_cast<double>(in[c]) *
                                (shared ? of_all : gateOf(p.gate, static_cast<double>(gates[c]))));
  }
}

const StateKernels& stateKernels(SimdTarget target) {
  return ORIEL_CPU_PICK(target, kStateKernels);
}
}  // namespace oriel_internal
#endif
