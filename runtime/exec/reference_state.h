// The reference executor's recurrent states: scalar, token by token, as shaders/shared/layout.h defines them.
#pragma once

#include "exec/step_state.h"
#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Rows of tokens; `in` and `out` point to the first token's.
void referenceStateInputs(const StateInputsPush& push, uint32_t n_tokens, const float* in,
                          const StepState& state, const float* taps, const float* gates,
                          float* out);
void referenceStateScan(const StateScanPush& push, uint32_t n_tokens, const float* in,
                        const StepState& state, const float* gates, float* out);
/// Applies GatedNormPush::gate to a value.
double gateOf(uint32_t gate, double x);
void referenceGatedNorm(const GatedNormPush& push, uint32_t n_tokens, const float* in,
                        const float* gates, const float* weight, float* out);

/// Rows of a state's matrices in one slot, with their format.
class StateMatrix {
 public:
  /// `rows`: for all heads together.
  StateMatrix(StateFormat format, uint32_t rows, uint32_t key_dim)
      : format_(format), rows_(rows), key_dim_(key_dim) {}
  void load(const uint32_t* slot, uint32_t row, float* values) const;
  void store(uint32_t* slot, uint32_t row, const float* values) const;

 private:
  StateFormat format_;
  uint32_t rows_;
  uint32_t key_dim_;
};

}  // namespace oriel_internal
