#include "plan/op_list.h"

#include <cmath>

#include "kv/memory.h"

namespace oriel_internal {
namespace {

class StateOps {
 public:
  StateOps(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
           const ActivationLayout& activations, const ModelDesc& model, OpList* ops)
      : layer_(layer),
        state_(kind.state),
        by_key_(kind.state.rule == StateRule::kKda),
        delta_(by_key_ || kind.state.rule == StateRule::kDelta),
        side_(memory),
        memory_(stateOf(model, ops->plan().cache, ops->plan().formats, layer)),
        act_(activations),
        model_(model),
        ops_(*ops) {}

  Status emit(const Rows& in, const Rows& out) {
    ORIEL_TRY(inputProduct(in));
    gates_ = gates();
    inputs();
    scan();
    gatedNorm();
    return ops_.product({{TensorRole::kStateOut, layer_}},
                        {act_.state_mixed, act_.state_mixed_stride, state_.valueCols()}, out,
                        act_.state_in, Write::kAdd);
  }

 private:
  Status inputProduct(const Rows& in) {
    const Rows out = {act_.state_in, act_.state_in_stride, 0};
    if (by_key_) {
      return ops_.product({{TensorRole::kQuery, layer_},
                           {TensorRole::kKey, layer_},
                           {TensorRole::kValue, layer_},
                           {TensorRole::kStateGate, layer_},
                           {TensorRole::kStateFactor, layer_},
                           {TensorRole::kStateDecay, layer_}},
                          in, out, act_.state_mixed, Write::kOver);
    }
    if (ops_.has(TensorRole::kStateFactorDecay, layer_)) {
      // For every head of keys: the factors of its heads, then their decays.
      const uint32_t heads = state_.heads / state_.key_heads;
      return ops_.product({{TensorRole::kStateIn, layer_},
                           {TensorRole::kStateGate, layer_},
                           {TensorRole::kStateFactorDecay, layer_, heads, 0, 2 * heads},
                           {TensorRole::kStateFactorDecay, layer_, heads, heads, 2 * heads}},
                          in, out, act_.state_mixed, Write::kOver);
    }
    if (delta_) {
      return ops_.product({{TensorRole::kStateIn, layer_},
                           {TensorRole::kStateGate, layer_},
                           {TensorRole::kStateFactor, layer_},
                           {TensorRole::kStateDecay, layer_}},
                          in, out, act_.state_mixed, Write::kOver);
    }
    return ops_.product({{TensorRole::kStateIn, layer_}}, in, out, act_.state_mixed, Write::kOver);
  }

  /// Steps of the decays, and per head rates, and in Mamba-2 the weights by state.
  BufferRef gates() {
    const uint32_t heads = state_.heads;
    if (delta_) {
      return ops_.vectors(
          {{TensorRole::kStateSteps, state_.decays()}, {TensorRole::kStateRates, heads}}, layer_);
    }
    return ops_.vectors({{TensorRole::kStateSteps, heads},
                         {TensorRole::kStateRates, heads},
                         {TensorRole::kStateSkip, heads}},
                        layer_);
  }

  BufferRef taps() {
    const uint32_t cols = state_.channels() * state_.conv_taps;
    if (by_key_) {
      return ops_.vectors({{TensorRole::kStateTaps, cols / 3},
                           {TensorRole::kStateKeyTaps, cols / 3},
                           {TensorRole::kStateValueTaps, cols / 3}},
                          layer_);
    }
    if (!ops_.has(TensorRole::kStateTapsBias, layer_)) {
      return ops_.vector(TensorRole::kStateTaps, layer_, cols);
    }
    return ops_.vectors(
        {{TensorRole::kStateTaps, cols}, {TensorRole::kStateTapsBias, state_.channels()}}, layer_);
  }

  void inputs() {
    Op op = ops_.make(OpKind::kStateInputs,
                      {act_.state_in, act_.device_step, act_.state_mixed, side_, taps(), gates_});
    StateInputsPush& push = op.push.state_inputs;
    push.in_stride = act_.state_in_stride;
    push.out_stride = act_.state_mixed_stride;
    push.delta = delta_ ? 1 : 0;
    push.heads = state_.heads;
    push.key_heads = state_.key_heads;
    push.key_dim = state_.key_dim;
    push.value_dim = state_.value_dim;
    push.taps = state_.conv_taps;
    push.has_bias = ops_.has(TensorRole::kStateTapsBias, layer_) ? 1 : 0;
    push.eps = model_.rms_eps;
    push.slot_words = memory_.shape.head_dim;
    push.view = memory_.view;
    push.by_key = by_key_ ? 1 : 0;
    push.least = state_.least_decay;
    columns_ = stateColumns(push);
    ops_.toBody(op);
  }

  void scan() {
    Op op = ops_.make(OpKind::kStateScan,
                      {act_.state_mixed, act_.device_step, act_.state_out, side_, gates_});
    StateScanPush& push = op.push.state_scan;
    push.in_stride = act_.state_mixed_stride;
    push.out_stride = act_.state_out_stride;
    push.heads = state_.heads;
    push.key_heads = state_.key_heads;
    push.key_dim = state_.key_dim;
    push.value_dim = state_.value_dim;
    push.delta = delta_ ? 1 : 0;
    push.format = static_cast<uint32_t>(memory_.state);
    push.scale = delta_ ? 1.0f / std::sqrt(static_cast<float>(state_.key_dim)) : 1.0f;
    push.slot_words = memory_.shape.head_dim;
    push.view = memory_.view;
    push.tiled = delta_ && !state_.in_order ? 1 : 0;
    push.by_key = by_key_ ? 1 : 0;
    ops_.toBody(op);
    ops_.endFill();
  }

  // The gated delta rule norms each head and then gates. Mamba-2 gates and then norms the heads that share keys. Not in
  // place, so that every thread of a CPU can compute the row.
  void gatedNorm() {
    Op op = ops_.make(OpKind::kGatedNorm,
                      {act_.state_out, act_.device_step, act_.state_mixed, act_.state_in});
    GatedNormPush& push = op.push.gated_norm;
    push.rows = delta_ ? state_.heads : state_.key_heads;
    push.cols = state_.valueCols() / push.rows;
    push.in_stride = act_.state_out_stride;
    push.out_stride = act_.state_mixed_stride;
    push.gate_stride = act_.state_in_stride;
    push.gate_first = columns_.gates;
    push.gate = by_key_ ? kGateSigmoid : kGateSilu;
    push.has_norm = state_.normed ? 1 : 0;
    push.norm_last = push.weight_rows = delta_ ? 0 : 1;
    push.eps = model_.rms_eps;
    if (state_.normed) {
      op.bindings[op.n_bindings++] = ops_.vector(
          TensorRole::kStateNorm, layer_, push.weight_rows != 0 ? state_.valueCols() : push.cols);
    }
    ops_.toBody(op);
  }

  const uint32_t layer_;
  const StateShape& state_;
  const bool by_key_;  ///< a decay for each value of a key
  const bool delta_;
  const BufferRef side_;
  const Memory memory_;
  const ActivationLayout& act_;
  const ModelDesc& model_;
  OpList& ops_;
  StateColumns columns_ = {};
  BufferRef gates_;
};

}  // namespace

Status emitState(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
                 const ActivationLayout& activations, const Rows& in, const Rows& out,
                 const ModelDesc& model, OpList* ops) {
  return StateOps(layer, kind, memory, activations, model, ops).emit(in, out);
}

}  // namespace oriel_internal
