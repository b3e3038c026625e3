// Ops of latent attention in plain scalar C++, for the reference executor.
#pragma once

#include "exec/executor.h"
#include "kv/cache_layout.h"
#include "plan/plan.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

struct ReferenceLatentAppend {
  LatentAppendPush push;
  KvFormat format;
  StepBlock step;
  const float* heads;
  float* queries;
  uint32_t* memory;
  const float* vectors;
};
/// For token `t`.
void referenceLatentAppend(const ReferenceLatentAppend& task, uint32_t t);

struct ReferenceLatentAttention {
  LatentAttentionPush push;
  KvFormat format;
  StepBlock step;
  const float* queries;
  float* out;
  uint32_t* memory;
};
/// For one head of token `t` over one split.
void referenceLatentAttention(const ReferenceLatentAttention& task, uint32_t t, uint32_t head,
                              uint32_t split);

// The reference executor's recurrent states: scalar, token by token, as shaders/shared/layout.h defines them.

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

// Reads rows of a weight slice for the reference executor.

constexpr uint32_t kTokenBlock = 8;  ///< tokens per unpacking of the weights

/// A weight slice, unpacked one unit of a row at a time.
struct WeightRows {
  WeightType type;
  const uint32_t* words;
  uint32_t group_words;
  uint32_t side_word;

  /// The values, bit-exact as in the file's format.
  void unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const;
  /// Products of one row with n <= kTokenBlock vectors. Each unit is unpacked once for all of them.
  void dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
            float* products) const;
};

}  // namespace oriel_internal
