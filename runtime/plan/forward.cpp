// Read from run() on downwards: the model from the token's id to its logits. Every line of it emits ops; nothing is
// computed here. docs/design.md names what differs between architectures, model/layer.h the fields that say so.
#include "plan/forward.h"

#include <algorithm>
#include <cmath>

#include "plan/draft.h"
#include "plan/experts.h"
#include "plan/latent.h"
#include "plan/op_list.h"
#include "plan/state.h"

namespace oriel_internal {
namespace {

constexpr float kSqrtHalf = 0.70710678f;

class Forward {
 public:
  Forward(const TensorIndex& tensors, const ModelDesc& model, const Log& log,
          const ActivationLayout& activations, const IoLayout& io, Plan* plan)
      : model_(model),
        act_(activations),
        io_(io),
        plan_(plan),
        ops_(tensors, log, activations, plan),
        rotations_(rotationTables(model)) {
    residual_ = {act_.residual, act_.embd_stride, model.n_embd};
    normed_ = {act_.normed, act_.embd_stride, model.n_embd};
    forEachPlacedMemory(model, plan->cache, plan->formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          if (memory.kind == MemoryKind::kState) {
                            states_[memory.layer] = sides[0];
                            return;
                          }
                          sides_[memory.layer][0] = sides[0];
                          sides_[memory.layer][1] = sides[1];
                        });
  }

  Status run() {
    outputNorm();
    ORIEL_TRY(embedding());
    if (model_.layer_input != 0) {
      ORIEL_TRY(layerInputs());
    }
    const uint32_t tail = model_.n_layers - model_.layersWithoutMemory();
    for (uint32_t layer = 0; layer < model_.n_layers; ++layer) {
      if (layer == tail) {
        beginTail();
      }
      ORIEL_TRY(mixer(layer));
      ORIEL_TRY(feedForward(layer));
      if (model_.layer_input != 0) {
        ORIEL_TRY(addLayerInput(layer));
      }
    }
    ORIEL_TRY(outputMatrix());
    bestTokens();
    ORIEL_TRY(draft());
    return ops_.finish();
  }

  WeightCounts counts() const { return ops_.counts(); }

 private:
  // --- From the id to the residual stream ---------------------------------------------------------

  Status embedding() {
    return ops_.matrix(TensorRole::kTokenEmbedding, model_.n_embd, [&](const MatrixSlice& slice) {
      Op op = ops_.make(OpKind::kEmbed, {slice.place, act_.device_step, act_.residual});
      op.weights = slice.type;
      EmbedPush& push = op.push.embed;
      push.cols = model_.n_embd;
      push.group_words = slice.geometry.groupWords();
      push.side_word = slice.geometry.sideWord();
      push.first_row = slice.first_row;
      push.rows = slice.rows;
      push.out_stride = act_.embd_stride;
      push.scale = model_.embedding_scale;
      push.of_step = push.accumulate = 0;
      ops_.toBody(op);
      if (model_.draft.n_layers != 0) {
        op.bindings[kOpOut] = act_.draft_in.resized(sizeof(float) * uint64_t{model_.n_embd});
        push.out_stride = act_.draft_in_stride;
        ops_.toDraft(op);
      }
      if (model_.tied_output) {
        outputSlice(slice);
      } else if (slice.first_row == 0) {
        ops_.countRead(slice.geometry.rowBytes());
      }
    });
  }

  // --- Inputs of the layers' own: (norm(projection * embedding) + row of a table) / sqrt(2), layer by layer ---

  Status layerInputs() {
    const uint32_t cols = model_.layer_input;
    const uint32_t all = cols * model_.n_layers;
    const Rows inputs = {act_.layer_inputs, act_.layer_inputs_stride, cols};
    ORIEL_TRY(ops_.product({{TensorRole::kLayerInputProjection, 0}}, residual_, inputs,
                           act_.queries, Write::kOver));
    // The products are divided by sqrt(n_embd) before they are normed, which the epsilon undoes.
    const float eps = model_.rms_eps * static_cast<float>(model_.n_embd);
    Op norm = ops_.norm(TensorRole::kLayerInputNorm, 0, inputs, inputs, eps, Write::kOver);
    norm.push.rms_norm.rows = model_.n_layers;
    norm.push.rms_norm.scale = kSqrtHalf;
    ops_.toBody(norm);
    const float scale = std::sqrt(static_cast<float>(cols)) * kSqrtHalf;
    if (plan_->on_file.rows) {
      ops_.rowsOnFile(TensorRole::kLayerInputEmbedding, all, io_.file_rows);
      const WeightType type = plan_->on_file.row_type;
      MatrixSlice rows = {io_.file_rows, type, weightGeometry(type, all), 0, plan_->chunk_tokens};
      ops_.toBody(addRows(rows, all, scale, true));
      ops_.countRead(rows.geometry.rowBytes());
      return kOk;
    }
    return ops_.matrix(TensorRole::kLayerInputEmbedding, all, [&](const MatrixSlice& slice) {
      ops_.toBody(addRows(slice, all, scale, false));
      if (slice.first_row == 0) {
        ops_.countRead(slice.geometry.rowBytes());
      }
    });
  }

  Op addRows(const MatrixSlice& slice, uint32_t cols, float scale, bool of_step) const {
    Op op = ops_.make(OpKind::kEmbed, {slice.place, act_.device_step, act_.layer_inputs});
    op.weights = slice.type;
    op.push.embed = {cols,
                     slice.geometry.groupWords(),
                     slice.geometry.sideWord(),
                     slice.first_row,
                     slice.rows,
                     act_.layer_inputs_stride,
                     scale,
                     of_step ? 1u : 0u,
                     1};
    return op;
  }

  // residual += norm(out * (activation(gate * residual) * input))
  Status addLayerInput(uint32_t layer) {
    const uint32_t cols = model_.layer_input;
    const uint32_t gate = paddedCols(cols * model_.n_layers);
    const Rows gates = {act_.layer_inputs, act_.layer_inputs_stride, cols, gate};
    ORIEL_TRY(ops_.product({{TensorRole::kLayerInputGate, layer}}, residual_, gates, act_.gate_up,
                           Write::kOver));
    Op gated =
        ops_.make(OpKind::kGatedActivation, {act_.layer_inputs, act_.device_step, act_.gated});
    gated.push.gated_activation = {cols,
                                   act_.layer_inputs_stride,
                                   gate,
                                   layer * cols,
                                   act_.gated_stride,
                                   model_.kind(layer).gelu ? 1u : 0u,
                                   1};
    ops_.toBody(gated);
    const Rows in = {act_.gated, act_.gated_stride, cols};
    return addBranch(TensorRole::kLayerInputOut, TensorRole::kLayerInputPostNorm, layer, in,
                     act_.gate_up, true);
  }

  // --- A layer: residual += mixer(norm(residual)); residual += feedForward(norm(residual)) --------

  Status mixer(uint32_t layer) {
    const LayerKind& kind = model_.kind(layer);
    const Rows in = branchInput(TensorRole::kAttentionNorm, layer);
    if (kind.mixer == Mixer::kShortConv) {
      return shortConv(layer, in);
    }
    if (kind.attends()) {
      ORIEL_TRY(attention(layer, in));
    }
    if (kind.keepsState()) {
      ORIEL_TRY(emitState(layer, kind, states_[layer], act_, in, residual_, model_, &ops_));
    }
    return kOk;
  }

  // What a branch reads: the residual stream by way of a norm, where the architecture has one before.
  Rows branchInput(TensorRole norm, uint32_t layer) {
    if (!ops_.has(norm, layer)) {
      return residual_;
    }
    ops_.toBody(ops_.norm(norm, layer, residual_, normed_, model_.residual_eps, Write::kOver));
    return normed_;
  }

  // A branch's last product, added to the residual stream, by way of a norm where the architecture has one behind;
  // meanwhile the piece `unused` is. `last`: of the layer, behind which the residual may be scaled.
  Status addBranch(TensorRole matrix, TensorRole norm, uint32_t layer, const Rows& in,
                   const BufferRef& unused, bool last = false) {
    if (!ops_.has(norm, layer)) {
      return ops_.product({{matrix, layer}}, in, residual_, unused, Write::kAdd);
    }
    ORIEL_TRY(ops_.product({{matrix, layer}}, in, normed_, unused, Write::kOver));
    Op add = ops_.norm(norm, layer, normed_, residual_, model_.rms_eps, Write::kAdd);
    if (last && ops_.has(TensorRole::kLayerScale, layer)) {
      add.bindings[add.n_bindings++] = ops_.vector(TensorRole::kLayerScale, layer, 1);
      add.push.rms_norm.has_factor = 1;
    }
    ops_.toBody(add);
    return kOk;
  }

  // Layers from here on have no memory of their own: a token of a chunk whose logits are wanted goes on by itself.
  void beginTail() {
    ops_.endFill();
    for (const Rows& rows :
         {residual_, Rows{act_.layer_inputs, act_.layer_inputs_stride, act_.layer_inputs_stride}}) {
      if (rows.cols != 0) {
        Op op = ops_.make(OpKind::kTail, {rows.place, act_.device_step, rows.place});
        op.push.tail = {rows.cols, rows.stride};
        ops_.toTail(op);
      }
    }
    ops_.beginTail();
  }

  // After an op that writes a memory.
  void remembered(uint32_t layer) {
    if (model_.ownsMemory(layer)) {
      ops_.endFill();
    }
  }

  // --- Attention: queries, keys, values; rotated and remembered; a weighted sum of what is seen ---

  Status attention(uint32_t layer, const Rows& in) {
    const LayerKind& kind = model_.kind(layer);
    if (kind.isLatent()) {
      const LatentPlaces places = {act_, rotations_, memoryOfLayer(layer), sides_[layer][0]};
      ORIEL_TRY(emitLatentAttention(layer, model_, places, in, &ops_));
      return addBranch(TensorRole::kAttentionOut, TensorRole::kAttentionPostNorm, layer,
                       {act_.attended, act_.attended_stride, kind.attendedCols()}, act_.sums);
    }
    ORIEL_TRY(queriesKeysValues(layer, kind, in));
    rotateAndRemember(layer, kind);
    attend(layer, kind);
    if (kind.gated) {
      gateHeads(kind);
    }
    return addBranch(TensorRole::kAttentionOut, TensorRole::kAttentionPostNorm, layer,
                     {act_.attended, act_.attended_stride, kind.queryCols()}, act_.queries);
  }

  Status queriesKeysValues(uint32_t layer, const LayerKind& kind, const Rows& in) {
    const Rows qkv = {act_.qkv, act_.qkv_stride, 0};
    if (!model_.ownsMemory(layer)) {
      ORIEL_TRY(ops_.product({{TensorRole::kQuery, layer}}, in, qkv, act_.queries, Write::kOver));
      addBias(TensorRole::kQueryBias, layer, kind.queryCols(), 0);
      normHeads(TensorRole::kQueryNorm, layer, kind, kind.n_heads, 0);
      return kOk;
    }
    if (kind.gated) {
      // Of every head its query, then its gate: the gates go behind all else.
      const uint32_t dim = kind.head_dim;
      ORIEL_TRY(ops_.product({{TensorRole::kQuery, layer, dim, 0, 2 * dim},
                              {TensorRole::kKey, layer},
                              {TensorRole::kValue, layer},
                              {TensorRole::kQuery, layer, dim, dim, 2 * dim}},
                             in, qkv, act_.queries, Write::kOver));
    } else if (ops_.has(TensorRole::kQkv, layer)) {
      ORIEL_TRY(ops_.product({{TensorRole::kQkv, layer}}, in, qkv, act_.queries, Write::kOver));
    } else if (ops_.has(TensorRole::kValue, layer)) {
      ORIEL_TRY(ops_.product(
          {{TensorRole::kQuery, layer}, {TensorRole::kKey, layer}, {TensorRole::kValue, layer}}, in,
          qkv, act_.queries, Write::kOver));
    } else {
      ORIEL_TRY(ops_.product({{TensorRole::kQuery, layer}, {TensorRole::kKey, layer}}, in, qkv,
                             act_.queries, Write::kOver));
    }
    const uint32_t keys = kind.queryCols();
    const uint32_t values = keys + kind.kvCols();
    if (kind.value_norm) {  // before the keys are, of which they may be made
      normValues(kind, ops_.has(TensorRole::kValue, layer) ? values : keys, values);
    }
    addBias(TensorRole::kQueryBias, layer, kind.queryCols(), 0);
    addBias(TensorRole::kKeyBias, layer, kind.kvCols(), keys);
    addBias(TensorRole::kValueBias, layer, kind.kvCols(), values);
    normHeads(TensorRole::kQueryNorm, layer, kind, kind.n_heads, 0);
    normHeads(TensorRole::kKeyNorm, layer, kind, kind.n_kv_heads, keys);
    return kOk;
  }

  void addBias(TensorRole role, uint32_t layer, uint32_t cols, uint32_t first) {
    if (!ops_.has(role, layer)) {
      return;
    }
    Op op =
        ops_.make(OpKind::kAddBias, {ops_.vector(role, layer, cols), act_.device_step, act_.qkv});
    op.push.add_bias = {cols, act_.qkv_stride, first};
    ops_.toBody(op);
  }

  // `heads` heads of every token's qkv, in place: each for itself, or all as one row. Of norms that come after RoPE
  // only the division is done here, which rotating does not change.
  void normHeads(TensorRole role, uint32_t layer, const LayerKind& kind, uint32_t heads,
                 uint32_t first) {
    if (!ops_.has(role, layer)) {
      return;
    }
    const uint32_t cols = kind.row_norms ? heads * kind.head_dim : kind.head_dim;
    const Rows qkv = {act_.qkv, act_.qkv_stride, cols};
    Op op = kind.norms_after_rope
                ? ops_.norm(ops_.ones(cols), qkv, qkv, model_.rms_eps, Write::kOver)
                : ops_.norm(role, layer, qkv, qkv, model_.rms_eps, Write::kOver);
    op.push.rms_norm.rows = kind.row_norms ? 1 : heads;
    op.push.rms_norm.first = op.push.rms_norm.out_first = first;
    ops_.toBody(op);
  }

  void normValues(const LayerKind& kind, uint32_t from, uint32_t to) {
    const Rows qkv = {act_.qkv, act_.qkv_stride, kind.head_dim};
    Op op = ops_.norm(ops_.ones(kind.head_dim), qkv, qkv, model_.rms_eps, Write::kOver);
    op.push.rms_norm.rows = kind.n_kv_heads;
    op.push.rms_norm.first = from;
    op.push.rms_norm.out_first = to;
    ops_.toBody(op);
  }

  void gateHeads(const LayerKind& kind) {
    Op op =
        ops_.make(OpKind::kGatedNorm, {act_.attended, act_.device_step, act_.attended, act_.qkv});
    GatedNormPush& push = op.push.gated_norm;
    push.rows = kind.n_heads;
    push.cols = kind.head_dim;
    push.in_stride = push.out_stride = act_.attended_stride;
    push.gate_stride = act_.qkv_stride;
    push.gate_first = kind.queryCols() + 2 * kind.kvCols();
    push.sigmoid = 1;
    ops_.toBody(op);
  }

  void rotateAndRemember(uint32_t layer, const LayerKind& kind) {
    const Memory memory = memoryOfLayer(layer);
    const BufferRef* const sides = sides_[model_.layers[layer].memory_of];
    Op op = ops_.make(OpKind::kRopeAppend,
                      {act_.qkv, act_.device_step, act_.queries, sides[0], sides[1]});
    if (kind.norms_after_rope) {
      op.bindings[op.n_bindings++] = ops_.vectors(
          {{TensorRole::kQueryNorm, kind.head_dim}, {TensorRole::kKeyNorm, kind.head_dim}}, layer);
    }
    op.k_format = memory.formats[0];
    op.v_format = memory.formats[1];
    ops_.rotation(model_, kind, memory, rotations_, &op.push.rope_append);
    op.push.rope_append.n_kv_heads = model_.ownsMemory(layer) ? kind.n_kv_heads : 0;
    ops_.toBody(op);
    remembered(layer);
  }

  void attend(uint32_t layer, const LayerKind& kind) {
    const Memory memory = memoryOfLayer(layer);
    const CacheShape& shape = memory.shape;
    const BufferRef* const sides = sides_[model_.layers[layer].memory_of];
    Op op = ops_.make(OpKind::kAttention,
                      {act_.queries, act_.device_step, act_.attended, sides[0], sides[1]});
    op.k_format = memory.formats[0];
    op.v_format = memory.formats[1];
    AttentionPush& push = op.push.attention;
    push.n_heads = kind.n_heads;
    push.n_kv_heads = kind.n_kv_heads;
    push.head_dim = kind.head_dim;
    push.query_stride = act_.query_stride;
    push.view = memory.view;
    push.sinks = shape.sinkRoom();
    push.all_sinks = shape.sinkSlots();
    push.ring = shape.ring;
    push.scale = kind.attention_scale;
    push.soft_cap = kind.soft_cap;
    ops_.attention(op, &Op::Push::attention, kind.head_dim, shape,
                   {act_.attended, act_.attended_stride});
  }

  // --- Short convolution: a gated sum over the last few tokens, channel by channel -----------------

  Status shortConv(uint32_t layer, const Rows& in) {
    const LayerKind& kind = model_.kind(layer);
    const Memory memory = memoryOfLayer(layer);
    ORIEL_TRY(ops_.product({{TensorRole::kConvIn, layer}}, in, {act_.conv, act_.conv_stride, 0},
                           act_.convolved, Write::kOver));
    const BufferRef taps =
        ops_.vector(TensorRole::kConvTaps, layer, kind.conv_taps * model_.n_embd);
    Op op = ops_.make(OpKind::kShortConv,
                      {act_.conv, act_.device_step, act_.convolved, sides_[layer][0], taps});
    op.push.short_conv = {model_.n_embd, act_.conv_stride, act_.embd_stride, kind.conv_taps,
                          memory.view};
    ops_.toBody(op);
    remembered(layer);
    return addBranch(TensorRole::kConvOut, TensorRole::kAttentionPostNorm, layer,
                     {act_.convolved, act_.embd_stride, model_.n_embd}, act_.conv);
  }

  // --- Feed-forward: down(activation(gate) * up) ---------------------------------------------------

  Status feedForward(uint32_t layer) {
    const LayerKind& kind = model_.kind(layer);
    if (kind.n_ff == 0 && kind.experts.count == 0) {
      return kOk;
    }
    const Rows in = branchInput(TensorRole::kFeedForwardNorm, layer);
    if (kind.n_ff != 0) {
      ORIEL_TRY(gatedFeedForward(layer, kind, in));
    }
    return kind.experts.count != 0 ? emitExperts(layer, kind, act_, io_, in, residual_, &ops_)
                                   : kOk;
  }

  Status gatedFeedForward(uint32_t layer, const LayerKind& kind, const Rows& in) {
    const Rows gate_up = {act_.gate_up, act_.gate_up_stride, 0};
    if (ops_.has(TensorRole::kGateUp, layer)) {
      ORIEL_TRY(
          ops_.product({{TensorRole::kGateUp, layer}}, in, gate_up, act_.gated, Write::kOver));
    } else {
      ORIEL_TRY(ops_.product({{TensorRole::kGate, layer}, {TensorRole::kUp, layer}}, in, gate_up,
                             act_.gated, Write::kOver));
    }
    Op gated = ops_.make(OpKind::kGatedActivation, {act_.gate_up, act_.device_step, act_.gated});
    gated.push.gated_activation = {kind.n_ff,         act_.gate_up_stride, 0, kind.n_ff,
                                   act_.gated_stride, kind.gelu ? 1u : 0u, 1};
    ops_.toBody(gated);
    return addBranch(TensorRole::kDown, TensorRole::kFeedForwardPostNorm, layer,
                     {act_.gated, act_.gated_stride, kind.n_ff}, act_.gate_up,
                     model_.layer_input == 0);
  }

  // --- From the residual stream to logits, of the tokens that the step names ----------------------

  void outputNorm() {
    Op op = ops_.norm(TensorRole::kOutputNorm, 0, residual_,
                      {act_.head_normed, act_.embd_stride, model_.n_embd}, model_.residual_eps,
                      Write::kOver);
    op.push.rms_norm.of_outputs = 1;
    op.push.rms_norm.scale = model_.logit_scale;
    ops_.toHead(op);
  }

  Status outputMatrix() {
    if (model_.tied_output) {
      return kOk;  // came with the embedding
    }
    return ops_.matrix(TensorRole::kOutput, model_.n_embd,
                       [&](const MatrixSlice& slice) { outputSlice(slice); });
  }

  void outputSlice(const MatrixSlice& slice) {
    Op op =
        ops_.matmul(slice, {act_.head_normed, act_.embd_stride, model_.n_embd},
                    {act_.logits, model_.n_vocab, model_.n_vocab}, act_.head_staged, Write::kOver);
    op.push.matmul.of_outputs = 1;
    ops_.countHead(slice.place.size_bytes);
    ops_.toHead(op);
  }

  void bestTokens() {
    if (model_.logit_cap != 0) {
      Op cap = ops_.make(OpKind::kSoftCap, {act_.logits, act_.device_step, act_.logits});
      cap.push.soft_cap = {model_.n_vocab, model_.n_vocab, model_.logit_cap};
      ops_.toHead(cap);
    }
    if (plan_->sessionCount() > 1) {
      Op keep = ops_.make(OpKind::kKeepLogits, {act_.logits, act_.device_step, act_.kept_logits});
      keep.push.keep_logits = {model_.n_vocab};
      ops_.toHead(keep);
    }
    Op blocks = ops_.make(OpKind::kTopBlocks, {act_.logits, act_.device_step, act_.top_keys});
    blocks.push.top = {model_.n_vocab, topBlocks(model_.n_vocab), 0};
    toHeads(blocks);
    Op best =
        ops_.make(OpKind::kTopTokens, {act_.logits, act_.device_step, io_.top, act_.top_keys});
    best.push.top = blocks.push.top;
    toHeads(best);
  }

  // In a batch every output has best tokens, elsewhere the last.
  void toHeads(Op op) {
    ops_.toHeadAlone(op);
    op.push.top.all_outputs = 1;
    ops_.toBatchHead(op);
  }

  // --- A model that guesses for this one ----------------------------------------------------------

  Status draft() {
    const DraftDesc& draft = model_.draft;
    if (draft.n_layers == 0) {
      return kOk;
    }
    const uint64_t read_bytes = ops_.counts().read_bytes_per_token;
    DraftMemory memories[DraftDesc::kMaxLayers];
    for (uint32_t layer = 0; layer < draft.n_layers; ++layer) {
      const uint32_t of = draft.layers[layer].memory_of;
      memories[layer].memory = memoryOfLayer(of);
      std::copy_n(sides_[of], 2, memories[layer].sides);
    }
    ORIEL_TRY(emitDraft(model_, act_, io_.top, rotations_, memories, &ops_));
    ops_.countDraft(read_bytes);
    return kOk;
  }

  // ------------------------------------------------------------------------------------------------

  Memory memoryOfLayer(uint32_t layer) const {
    return memoryOf(model_, plan_->cache, plan_->formats, model_.layers[layer].memory_of);
  }

  const ModelDesc& model_;
  const ActivationLayout& act_;
  const IoLayout& io_;
  Plan* plan_;
  OpList ops_;
  const RotationTables rotations_;
  BufferRef sides_[kMaxLayers][2];  // of the memories that layers own
  BufferRef states_[kMaxLayers];
  Rows residual_;
  Rows normed_;
};

}  // namespace

Status emitSteps(const TensorIndex& tensors, const ModelDesc& model, const Log& log,
                 const ActivationLayout& activations, const IoLayout& io, Plan* plan,
                 WeightCounts* counts) {
  Forward forward(tensors, model, log, activations, io, plan);
  ORIEL_TRY(forward.run());
  *counts = forward.counts();
  return kOk;
}

}  // namespace oriel_internal
