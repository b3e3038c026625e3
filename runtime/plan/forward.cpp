// Read downwards from run(): the model from the token's id to its logits. The functions emit ops and compute nothing.
// docs/decisions/010-architectures.md lists the differences between models, model/model_desc.h their fields.
#include "plan/forward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/model_desc.h"
#include "plan/op_list.h"

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
        ops_(tensors, model, log, activations, plan),
        rotations_(rotationTables(model)) {
    residual_ = {act_.residual, act_.embd_stride, model.n_embd};
    normed_ = {act_.normed, act_.embd_stride, model.n_embd};
    beside_ = {act_.beside, act_.embd_stride, model.n_embd};
    branch_ = {act_.branch, act_.embd_stride, model.n_embd};
    forEachPlacedMemory(model, plan->cache, plan->formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          if (memory.kind == MemoryKind::kState) {
                            states_[memory.layer] = sides[0];
                            return;
                          }
                          sides_[memory.layer][0] = sides[0];
                          sides_[memory.layer][1] = sides[1];
                        });
    if (model.predicts) {
      std::copy_n(act_.prediction_sides, 2, sides_[model.n_layers]);
      pair_ = {act_.draft_residual, act_.draft_stride, model.n_embd};
    }
  }

  Status run() {
    if (!model_.encoder) {
      outputNorm();
    }
    ORIEL_TRY(embedding());
    if (model_.predicts) {
      ORIEL_TRY(predictionEmbedding());
    }
    if (model_.layer_input != 0) {
      ORIEL_TRY(layerInputs());
    }
    const uint32_t tail = model_.n_layers - model_.layersWithoutMemory();
    if (model_.loops > 1) {
      ops_.beginRepeated();
    }
    for (uint32_t layer = 0; layer < model_.n_layers; ++layer) {
      if (layer == tail) {
        beginTail();
      }
      if (layer != 0 && layer % (model_.n_layers / model_.loops) == 0) {
        ops_.repeatWeights();
      }
      ORIEL_TRY(mixer(layer));
      if (!ops_.has(TensorRole::kSecondStreamNorm, layer)) {
        normStream(TensorRole::kAttentionStreamNorm, TensorRole::kAttentionStreamNormBias, layer);
      }
      ORIEL_TRY(feedForward(layer));
      normStream(TensorRole::kLayerStreamNorm, TensorRole::kLayerStreamNormBias, layer);
      if (model_.layer_input != 0) {
        ORIEL_TRY(addLayerInput(layer));
      }
      ops_.steer(layer, residual_);
      pictureRows(layer + 1);
      if (model_.loop_norms && layer + 1 != model_.n_layers &&
          (layer + 1) % (model_.n_layers / model_.loops) == 0) {
        ops_.toBody(loop_norm_);
      }
    }
    ops_.endRepeated();
    if (model_.predicts) {
      ORIEL_TRY(readPairs());
    }
    if (model_.encoder) {
      ORIEL_TRY(textHead());
      return ops_.finish();
    }
    ORIEL_TRY(outputMatrix());
    bestTokens();
    ORIEL_TRY(model_.predicts ? predict() : draft());
    return ops_.finish();
  }

  WeightCounts counts() const { return ops_.counts(); }

 private:
  // --- From the id to the residual stream ---------------------------------------------------------

  Status embedding() {
    ORIEL_TRY(embedTokens());
    ORIEL_TRY(ops_.adaptEmbedding(residual_));
    pictureRows(0);
    if (model_.token_types != 0) {
      ORIEL_TRY(addEmbedding(TensorRole::kTokenTypes, kEmbedPlaces));
    }
    if (model_.learned_positions) {
      ORIEL_TRY(addEmbedding(TensorRole::kPositionEmbedding,
                             model_.encoder ? kEmbedSlots : kEmbedPositions));
    }
    if (ops_.has(TensorRole::kEmbeddingNorm, 0)) {
      ops_.biasedNorm(TensorRole::kEmbeddingNorm, TensorRole::kEmbeddingNormBias, 0, residual_,
                      residual_);
    }
    return kOk;
  }

  Status addEmbedding(TensorRole role, uint32_t of_step) {
    return ops_.matrix(role, model_.n_embd, [&](const MatrixSlice& slice) {
      Op op = embed(slice, residual_);
      op.push.embed.of_step = of_step;
      op.push.embed.accumulate = 1;
      ops_.toBody(op);
      ops_.countRead(slice.first_row == 0 ? slice.geometry.rowBytes() : 0);
    });
  }

  Op embed(const MatrixSlice& slice, const Rows& out) const {
    Op op = ops_.make(OpKind::kEmbed, {slice.place, act_.device_step, out.place});
    op.weights = slice.type;
    op.push.embed = {out.cols,
                     slice.geometry.groupWords(),
                     slice.geometry.sideWord(),
                     slice.first_row,
                     slice.rows,
                     out.stride,
                     1,
                     kEmbedIds,
                     0};
    return op;
  }

  // Part `part` of the rows of pictures: replaces the embedding, or is added after layer part - 1. Other tokens of the
  // batch have no row in this slice. Pictures are always read in batches.
  void pictureRows(uint32_t part) {
    if (model_.pictures == nullptr || part >= model_.pictures->parts) {
      return;
    }
    const uint64_t bytes = picturePartBytes(model_, plan_->chunk_tokens);
    const WeightType type = WeightType::kF32;
    const MatrixSlice rows = {io_.picture_rows.part(part * bytes, bytes), type,
                              weightGeometry(type, model_.n_embd), kPicturePlace,
                              plan_->chunk_tokens};
    Op op = embed(rows, residual_);
    op.push.embed.of_step = kEmbedPlaces;
    op.push.embed.accumulate = part != 0 ? 1 : 0;
    ops_.toChunk(op);
  }

  Status embedTokens() {
    return ops_.matrix(TensorRole::kTokenEmbedding, model_.n_embd, [&](const MatrixSlice& slice) {
      Op op = embed(slice, residual_);
      EmbedPush& push = op.push.embed;
      push.scale = model_.embedding_scale;
      ops_.toBody(op);
      if (model_.draft.n_layers != 0) {
        op.bindings[kOpOut] = act_.draft_in.resized(sizeof(float) * uint64_t{model_.n_embd});
        push.out_stride = act_.draft_in_stride;
        ops_.toDraft(op);
      }
      if (model_.predicts && !ops_.has(TensorRole::kTokenEmbedding, model_.n_layers)) {
        op.bindings[kOpOut] = pair_.place;
        push.out_stride = pair_.stride;
        ops_.toDraft(op);
      }
      if (model_.tied_output && !model_.encoder) {
        outputSlice(slice);
      } else if (slice.first_row == 0) {
        ops_.countRead(slice.geometry.rowBytes());
      }
    });
  }

  // --- The layers' own inputs: (norm(projection * embedding) + row of a table) / sqrt(2), layer by layer ---

  Status layerInputs() {
    const uint32_t cols = model_.layer_input;
    const uint32_t all = cols * model_.n_layers;
    const Rows inputs = {act_.layer_inputs, act_.layer_inputs_stride, cols};
    ORIEL_TRY(ops_.product({{TensorRole::kLayerInputProjection, 0}}, residual_, inputs,
                           act_.queries, Write::kOver));
    // The products should be divided by sqrt(n_embd) before the norm. A scaled epsilon has the same effect.
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
    Op op = embed(slice, {act_.layer_inputs, act_.layer_inputs_stride, cols});
    op.push.embed.scale = scale;
    op.push.embed.of_step = of_step ? kEmbedRows : kEmbedIds;
    op.push.embed.accumulate = 1;
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
    gated.push.gated_activation = activationPush(model_, layer);
    GatedActivationPush& push = gated.push.gated_activation;
    push.cols = cols;
    push.in_stride = act_.layer_inputs_stride;
    push.gate_offset = gate;
    push.up_offset = layer * cols;
    push.out_stride = act_.gated_stride;
    ops_.toBody(gated);
    const Rows in = {act_.gated, act_.gated_stride, cols};
    return addBranch({TensorRole::kLayerInputOut, kNoRole, TensorRole::kLayerInputPostNorm, true},
                     layer, in, act_.gate_up);
  }

  // --- A layer: residual += mixer(norm(residual)); residual += feedForward(norm(residual)) --------

  Status mixer(uint32_t layer) {
    const LayerKind& kind = model_.kind(layer);
    if (kind.experts.routed_first) {
      ORIEL_TRY(ops_.product({{TensorRole::kRouter, layer}}, residual_,
                             {act_.scores, act_.scores_stride, 0}, act_.queries, Write::kOver));
    }
    if (kind.mixer == Mixer::kNone) {
      return kOk;
    }
    const Rows in = kind.parallel ? parallelInputs(layer)
                                  : branchInput(TensorRole::kAttentionNorm, layer, normed_);
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

  // The input of a branch: the residual stream, after the norm if the architecture has one there.
  Rows branchInput(TensorRole norm, uint32_t layer, const Rows& out) {
    if (!ops_.has(norm, layer) && !model_.bare_norms) {
      return residual_;
    }
    ops_.toBody(ops_.streamNorm(norm, layer, residual_, out, model_.residual_eps, Write::kOver));
    ops_.addBias(norm == TensorRole::kAttentionNorm ? TensorRole::kAttentionNormBias
                                                    : TensorRole::kFeedForwardNormBias,
                 layer, out);
    return out;
  }

  // Both branches read the unchanged residual stream: each through its own norm, or both through the only one.
  Rows parallelInputs(uint32_t layer) {
    const bool own = ops_.has(TensorRole::kAttentionNorm, layer);
    const Rows in = own ? branchInput(TensorRole::kAttentionNorm, layer, normed_) : beside_;
    parallel_ = ops_.has(TensorRole::kFeedForwardNorm, layer)
                    ? branchInput(TensorRole::kFeedForwardNorm, layer, beside_)
                    : in;
    return in;
  }

  // A branch's last product, with an optional bias, and the norm after it. `last`: the layer's last branch; the
  // residual may be scaled after it.
  struct Branch {
    TensorRole matrix;
    TensorRole bias;
    TensorRole norm;
    bool last = false;
  };
  // Adds a branch to the residual stream. The piece `unused` is free meanwhile.
  Status addBranch(const Branch& branch, uint32_t layer, const Rows& in, const BufferRef& unused) {
    const bool normed = ops_.has(branch.norm, layer);
    const Rows& out = normed ? normed_ : residual_;
    ORIEL_TRY(branchProduct(branch, layer, in, out, unused, normed ? Write::kOver : Write::kAdd));
    if (normed) {
      addNormed(branch, layer, normed_);
    }
    return kOk;
  }

  Status branchProduct(const Branch& branch, uint32_t layer, const Rows& in, const Rows& out,
                       const BufferRef& unused, Write write) {
    ORIEL_TRY(ops_.product({{branch.matrix, layer}}, in, out, unused, write));
    ops_.addBias(branch.bias, layer, out);
    return kOk;
  }

  void addNormed(const Branch& branch, uint32_t layer, const Rows& from) {
    Op add = ops_.norm(branch.norm, layer, from, residual_, model_.rms_eps, Write::kAdd);
    if (branch.last && ops_.has(TensorRole::kLayerScale, layer)) {
      add.bindings[add.n_bindings++] = ops_.vector(TensorRole::kLayerScale, layer, 1);
      add.push.rms_norm.has_factor = 1;
    }
    ops_.toBody(add);
  }

  // The layers from here on write no memory. Tokens of a chunk whose logits are needed continue alone.
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

  // Call after an op that writes a memory.
  void remembered(uint32_t layer) {
    if (model_.ownsMemory(layer)) {
      ops_.endFill();
    }
  }

  // --- Attention: queries, keys, values; RoPE and the cache; a weighted sum over the visible tokens ---

  Status attention(uint32_t layer, const Rows& in) {
    const LayerKind& kind = model_.kind(layer);
    ORIEL_TRY(gates(layer, kind, in));
    if (kind.isLatent()) {
      const LatentPlaces places = {act_, rotations_, memoryOfLayer(layer), sides_[layer][0]};
      ORIEL_TRY(emitLatentAttention(layer, model_, places, in, &ops_));
    } else {
      ORIEL_TRY(queriesKeysValues(layer, kind, in));
      rotateAndRemember(layer, kind);
      attend(layer, kind);
    }
    if (kind.gate != kNoGate) {
      gateHeads(kind);
    }
    const Rows attended = {act_.attended, act_.attended_stride, kind.attendedCols()};
    if (ops_.has(TensorRole::kAttentionSubNorm, layer)) {
      ops_.toBody(ops_.norm(TensorRole::kAttentionSubNorm, layer, attended, attended,
                            model_.rms_eps, Write::kOver));
    }
    const Branch out = {TensorRole::kAttentionOut, TensorRole::kAttentionOutBias,
                        TensorRole::kAttentionPostNorm};
    const BufferRef& unused = kind.isLatent() ? act_.sums : act_.queries;
    return ops_.has(TensorRole::kSecondStreamNorm, layer) ? addTwice(out, layer, attended, unused)
                                                          : addBranch(out, layer, attended, unused);
  }

  // residual = norm2(residual + norm(residual + branch)).
  Status addTwice(const Branch& branch, uint32_t layer, const Rows& in, const BufferRef& unused) {
    ORIEL_TRY(branchProduct(branch, layer, in, normed_, unused, Write::kOver));
    ops_.toBody(ops_.change(kChangeAddRows, residual_.place, normed_));
    ops_.biasedNorm(TensorRole::kAttentionStreamNorm, TensorRole::kAttentionStreamNormBias, layer,
                    normed_, residual_, Write::kAdd);
    ops_.biasedNorm(TensorRole::kSecondStreamNorm, TensorRole::kSecondStreamNormBias, layer,
                    residual_, residual_);
    return kOk;
  }

  // For models with a norm of the residual stream after each branch.
  void normStream(TensorRole norm, TensorRole bias, uint32_t layer) {
    if (ops_.has(norm, layer)) {
      ops_.biasedNorm(norm, bias, layer, residual_, residual_);
    }
  }

  Status queriesKeysValues(uint32_t layer, const LayerKind& kind, const Rows& in) {
    const Rows qkv = {act_.qkv, act_.qkv_stride, 0};
    const uint32_t keys = kind.queryCols();
    const uint32_t values = keys + kind.kvCols();
    const Rows of_query = {act_.qkv, act_.qkv_stride, keys};
    if (!model_.ownsMemory(layer)) {
      ORIEL_TRY(ops_.product({{TensorRole::kQuery, layer}}, in, qkv, act_.queries, Write::kOver));
      ops_.addBias(TensorRole::kQueryBias, layer, of_query);
      normHeads(TensorRole::kQueryNorm, layer, kind, kind.n_heads, 0);
      return kOk;
    }
    const Rows of_key = {act_.qkv, act_.qkv_stride, kind.kvCols(), keys};
    const Rows of_value = {act_.qkv, act_.qkv_stride, kind.kvCols(), values};
    const Rows of_all = {act_.qkv, act_.qkv_stride, values + kind.kvCols()};
    const bool fused = ops_.has(TensorRole::kQkv, layer);
    const bool has_values = fused || ops_.has(TensorRole::kValue, layer);
    const uint32_t dim = kind.head_dim;
    MatrixParts parts;
    if (fused) {
      parts.add({TensorRole::kQkv, layer});
    } else {
      // Gates come with the queries: for every head its query, then its gate. The gates move to the end of the row.
      parts.add(kind.gate_beside ? MatrixPart{TensorRole::kQuery, layer, dim, 0, 2 * dim}
                                 : MatrixPart{TensorRole::kQuery, layer});
      parts.add({TensorRole::kKey, layer});
      if (has_values) {
        parts.add({TensorRole::kValue, layer});
      }
    }
    if (kind.gate_beside) {
      parts.add({TensorRole::kQuery, layer, dim, dim, 2 * dim});
    }
    ORIEL_TRY(ops_.product(parts, in, qkv, act_.queries, Write::kOver));
    if (kind.value_experts.count != 0) {
      ORIEL_TRY(emitValueExperts(layer, kind, act_, io_, in, of_value, &ops_));
    }
    if (kind.value_norm) {  // before the norm of keys, because values may be made from them
      normValues(kind, has_values ? values : keys, values);
    }
    ops_.addBias(TensorRole::kQkvBias, layer, of_all);
    ops_.addBias(TensorRole::kQueryBias, layer, of_query);
    ops_.addBias(TensorRole::kKeyBias, layer, of_key);
    ops_.addBias(TensorRole::kValueBias, layer, of_value);
    if (model_.qkv_limit != 0) {
      Op clamp = ops_.change(kChangeClamp, act_.device_step, of_all);
      clamp.push.add_bias.limit = model_.qkv_limit;
      ops_.toBody(clamp);
    }
    normHeads(TensorRole::kQueryNorm, layer, kind, kind.n_heads, 0);
    normHeads(TensorRole::kKeyNorm, layer, kind, kind.n_kv_heads, keys);
    return kOk;
  }

  // Norms `heads` heads of every token's qkv in place: each head separately, or all as one row. If the norm comes after
  // RoPE, only the division is done here. RoPE does not change it.
  void normHeads(TensorRole role, uint32_t layer, const LayerKind& kind, uint32_t heads,
                 uint32_t first) {
    if (!ops_.has(role, layer)) {
      return;
    }
    const uint32_t cols = kind.row_norms ? heads * kind.head_dim : kind.head_dim;
    const Rows qkv = {act_.qkv, act_.qkv_stride, cols};
    const uint32_t weights = kind.head_norms ? heads * kind.head_dim : cols;
    Op op = ops_.norm(kind.norms_after_rope ? ops_.ones(cols) : ops_.vector(role, layer, weights),
                      qkv, qkv, model_.rms_eps, Write::kOver);
    op.push.rms_norm.rows = kind.row_norms ? 1 : heads;
    op.push.rms_norm.weight_rows = kind.head_norms ? 1 : 0;
    op.push.rms_norm.first = op.push.rms_norm.out_first = first;
    ops_.toBody(op);
    ops_.addBias(
        role == TensorRole::kQueryNorm ? TensorRole::kQueryNormBias : TensorRole::kKeyNormBias,
        layer, {act_.qkv, act_.qkv_stride, cols, first});
  }

  void normValues(const LayerKind& kind, uint32_t from, uint32_t to) {
    const Rows qkv = {act_.qkv, act_.qkv_stride, kind.head_dim};
    Op op = ops_.norm(ops_.ones(kind.head_dim), qkv, qkv, model_.rms_eps, Write::kOver);
    op.push.rms_norm.rows = kind.n_kv_heads;
    op.push.rms_norm.first = from;
    op.push.rms_norm.out_first = to;
    ops_.toBody(op);
  }

  // The place of the gates of attention's result: after all values that are computed together with them.
  Rows gateRows(const LayerKind& kind) const {
    return kind.isLatent()
               ? Rows{act_.gates, act_.gates_stride, 0}
               : Rows{act_.qkv, act_.qkv_stride, 0, kind.queryCols() + 2 * kind.kvCols()};
  }
  Status gates(uint32_t layer, const LayerKind& kind, const Rows& in) {
    if (kind.gate == kNoGate || kind.gate_beside) {
      return kOk;
    }
    return ops_.product({{TensorRole::kAttentionGate, layer}}, in, gateRows(kind),
                        kind.isLatent() ? act_.latent_queries : act_.queries, Write::kOver);
  }

  void gateHeads(const LayerKind& kind) {
    const Rows gates = gateRows(kind);
    Op op = ops_.make(OpKind::kGatedNorm,
                      {act_.attended, act_.device_step, act_.attended, gates.place});
    GatedNormPush& push = op.push.gated_norm;
    push.rows = kind.n_heads;
    push.cols = kind.isLatent() ? kind.value_dim : kind.head_dim;
    push.in_stride = push.out_stride = act_.attended_stride;
    push.gate_stride = gates.stride;
    push.gate_first = gates.first;
    push.gate = kind.gate;
    push.gate_rows = kind.gate_heads ? 1 : 0;
    ops_.toBody(op);
  }

  void rotateAndRemember(uint32_t layer, const LayerKind& kind) {
    Op op = rope(layer, kind.n_heads, model_.ownsMemory(layer) ? kind.n_kv_heads : 0);
    if (kind.norms_after_rope) {
      op.bindings[op.n_bindings++] = ops_.vectors(
          {{TensorRole::kQueryNorm, kind.head_dim}, {TensorRole::kKeyNorm, kind.head_dim}}, layer);
    }
    ops_.toBody(op);
    remembered(layer);
  }

  // Rotates these heads of qkv, and stores the keys and values.
  Op rope(uint32_t layer, uint32_t n_heads, uint32_t n_kv_heads) const {
    const Memory memory = memoryOfLayer(layer);
    const BufferRef* const sides = sides_[model_.layers[layer].memory_of];
    Op op = ops_.make(OpKind::kRopeAppend,
                      {act_.qkv, act_.device_step, act_.queries, sides[0], sides[1]});
    op.k_format = memory.formats[0];
    op.v_format = memory.formats[1];
    ops_.rotation(model_, model_.kind(layer), memory, rotations_, &op.push.rope_append);
    op.push.rope_append.n_heads = n_heads;
    op.push.rope_append.n_kv_heads = n_kv_heads;
    return op;
  }

  void attend(uint32_t layer, const LayerKind& kind) {
    const Memory memory = memoryOfLayer(layer);
    const CacheShape& shape = memory.shape;
    const BufferRef* const sides = sides_[model_.layers[layer].memory_of];
    Op op = ops_.make(OpKind::kAttention,
                      {act_.queries, act_.device_step, act_.attended, sides[0], sides[1]});
    if (ops_.has(TensorRole::kScoreBeside, layer)) {
      op.bindings[op.n_bindings++] = ops_.vector(TensorRole::kScoreBeside, layer, kind.n_heads);
    }
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
    for (uint32_t m = kind.alibi ? 1 : 0; m != 0 && m <= kind.n_heads; m *= 2) {
      push.alibi_heads = m;
    }
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
    op.push.short_conv = {model_.n_embd,  act_.conv_stride, act_.embd_stride,
                          kind.conv_taps, memory.view,      model_.encoder ? 1u : 0u};
    ops_.toBody(op);
    remembered(layer);
    return addBranch({TensorRole::kConvOut, kNoRole, TensorRole::kAttentionPostNorm}, layer,
                     {act_.convolved, act_.embd_stride, model_.n_embd}, act_.conv);
  }

  // --- Feed-forward: down(activation(gate) * up) ---------------------------------------------------

  Status feedForward(uint32_t layer) {
    const LayerKind& kind = model_.kind(layer);
    const Experts& experts = kind.experts;
    if (kind.n_ff == 0 && experts.count == 0) {
      return kOk;
    }
    const Branch branch = {TensorRole::kDown, TensorRole::kDownBias,
                           TensorRole::kFeedForwardPostNorm, model_.layer_input == 0};
    const TensorRole norm =
        kind.mixer == Mixer::kNone ? TensorRole::kAttentionNorm : TensorRole::kFeedForwardNorm;
    const Rows in = kind.parallel ? parallel_ : branchInput(norm, layer, normed_);
    const Rows gated = {act_.gated, act_.gated_stride, kind.n_ff};
    if (kind.n_ff != 0) {
      ORIEL_TRY(gatedFeedForward(layer, kind, in));
    }
    if (experts.count == 0) {
      return addBranch(branch, layer, gated, act_.gate_up);
    }
    const Rows& out = kind.norms_summed ? branch_ : residual_;
    Write write = kind.norms_summed ? Write::kOver : Write::kAdd;
    if (kind.n_ff != 0) {
      ORIEL_TRY(branchProduct(branch, layer, gated, out, act_.gate_up, write));
      write = Write::kAdd;
    }
    ORIEL_TRY(experts.own_input ? expertsBeside(layer)
              : experts.latent != 0
                  ? expertsOfLatent(layer, kind, in, out)
                  : emitExperts(layer, model_, act_, io_,
                                {experts.routed_first ? Rows() : in, in, out, write}, &ops_));
    if (kind.norms_summed) {
      addNormed(branch, layer, branch_);
    }
    return kOk;
  }

  // Experts with norms before and after them. The same holds for the feed-forward parallel to them, which is in
  // branch_.
  Status expertsBeside(uint32_t layer) {
    ops_.toBody(ops_.norm(TensorRole::kDensePostNorm, layer, branch_, branch_, model_.rms_eps,
                          Write::kOver));
    Op of_router = ops_.norm(TensorRole::kRouterNorm, layer, residual_, normed_,
                             model_.residual_eps, Write::kOver);
    of_router.push.rms_norm.scale = 1 / std::sqrt(static_cast<float>(model_.n_embd));
    ops_.toBody(of_router);
    ORIEL_TRY(ops_.product({{TensorRole::kRouter, layer}}, normed_,
                           {act_.scores, act_.scores_stride, 0}, act_.expert_gated, Write::kOver));
    ops_.toBody(ops_.norm(TensorRole::kExpertNorm, layer, residual_, normed_, model_.residual_eps,
                          Write::kOver));
    ORIEL_TRY(
        emitExperts(layer, model_, act_, io_, {Rows(), normed_, beside_, Write::kOver}, &ops_));
    ops_.toBody(ops_.norm(TensorRole::kExpertPostNorm, layer, beside_, branch_, model_.rms_eps,
                          Write::kAdd));
    return kOk;
  }

  // Experts with a shorter vector than the layer's.
  Status expertsOfLatent(uint32_t layer, const LayerKind& kind, const Rows& in, const Rows& out) {
    Rows latent = beside_;
    Rows sum = branch_;
    latent.cols = sum.cols = kind.experts.latent;
    ORIEL_TRY(ops_.product({{TensorRole::kExpertLatentIn, layer}}, in, latent, act_.expert_gated,
                           Write::kOver));
    ORIEL_TRY(emitExperts(layer, model_, act_, io_, {in, latent, sum, Write::kOver}, &ops_));
    return ops_.product({{TensorRole::kExpertLatentOut, layer}}, sum, out, act_.expert_gated,
                        Write::kAdd);
  }

  // The input of the last product, in act_.gated.
  Status gatedFeedForward(uint32_t layer, const LayerKind& kind, const Rows& in) {
    const uint32_t n_ff = kind.n_ff;
    const auto columns = [&](uint32_t first, uint32_t cols) {
      return Rows{act_.gate_up, act_.gate_up_stride, cols, first};
    };
    const bool fused = ops_.has(TensorRole::kGateUp, layer);
    const uint32_t up = kind.plain ? 0 : n_ff;
    MatrixParts parts;
    if (!fused && !kind.plain) {
      parts.add({TensorRole::kGate, layer});
    }
    parts.add({fused ? TensorRole::kGateUp : TensorRole::kUp, layer});
    ORIEL_TRY(ops_.product(parts, in, columns(0, 0), act_.gated, Write::kOver));
    ops_.addBias(TensorRole::kUpBias, layer, columns(up, n_ff));
    Op op = ops_.make(OpKind::kGatedActivation, {act_.gate_up, act_.device_step, act_.gated});
    op.push.gated_activation = activationPush(model_, layer);
    GatedActivationPush& push = op.push.gated_activation;
    push.cols = push.up_offset = n_ff;
    push.in_stride = act_.gate_up_stride;
    push.out_stride = act_.gated_stride;
    push.scale = kind.experts.count != 0 ? kind.experts.shared_scale : 1;
    const Rows gated = {act_.gated, act_.gated_stride, n_ff};
    if (kind.experts.shared_gate) {
      ORIEL_TRY(ops_.product({{TensorRole::kSharedGate, layer}}, in, columns(2 * n_ff, 0),
                             act_.gated, Write::kOver));
    }
    ops_.toBody(op);
    if (kind.experts.shared_gate) {
      Op gate =
          ops_.make(OpKind::kGatedNorm, {gated.place, act_.device_step, gated.place, act_.gate_up});
      GatedNormPush& by = gate.push.gated_norm;
      by.rows = by.gate_rows = 1;
      by.cols = n_ff;
      by.in_stride = by.out_stride = gated.stride;
      by.gate_stride = act_.gate_up_stride;
      by.gate_first = 2 * n_ff;
      by.gate = kGateSigmoid;
      ops_.toBody(gate);
    }
    if (ops_.has(TensorRole::kFeedForwardSubNorm, layer)) {
      ops_.toBody(ops_.norm(TensorRole::kFeedForwardSubNorm, layer, gated, gated, model_.rms_eps,
                            Write::kOver));
    }
    return kOk;
  }

  // --- From the residual stream to a vector or scores of every text -------------------------------

  Status textHead() {
    Rows from = residual_;
    Rows to = normed_;
    if (ops_.has(TensorRole::kOutputNorm, 0)) {
      ops_.biasedNorm(TensorRole::kOutputNorm, TensorRole::kOutputNormBias, 0, residual_, normed_);
      std::swap(from, to);
    }
    const Rows out = {act_.logits, model_.textCols(), model_.textCols()};
    const bool more = model_.labels != 0 || model_.dense != 0;
    const Rows& pooled = more ? to : out;
    Op pool = ops_.make(OpKind::kPool, {from.place, act_.device_step, pooled.place});
    pool.push.pool = {model_.n_embd, from.stride, pooled.stride};
    ops_.toHead(pool);
    if (model_.dense != 0) {
      const Rows wide = {act_.dense, act_.dense_stride, model_.dense};
      ORIEL_TRY(textProduct(TensorRole::kDenseIn, kNoRole, to, wide));
      return textProduct(TensorRole::kDenseOut, kNoRole, wide, out);
    }
    if (model_.labels == 0) {
      return kOk;
    }
    if (ops_.has(TensorRole::kRank, 0)) {
      ORIEL_TRY(textProduct(TensorRole::kRank, TensorRole::kRankBias, to, from));
      Op activated = ops_.make(OpKind::kGatedActivation, {from.place, act_.device_step, to.place});
      GatedActivationPush& push = activated.push.gated_activation;
      push.cols = model_.n_embd;
      push.in_stride = push.out_stride = from.stride;
      push.activation = model_.rank_activation;
      push.rows_per_token = push.plain = 1;
      push.scale = 1;
      ops_.toHead(activated);
    }
    if (ops_.has(TensorRole::kRankNorm, 0)) {
      ops_.toHead(ops_.norm(TensorRole::kRankNorm, 0, to, to, model_.rms_eps, Write::kOver));
    }
    return textProduct(TensorRole::kLabels, TensorRole::kLabelsBias, to, out);
  }

  Status textProduct(TensorRole matrix, TensorRole bias, const Rows& in, const Rows& out) {
    ORIEL_TRY(ops_.matrix(matrix, in.cols, [&](const MatrixSlice& slice) {
      Op op = ops_.matmul(slice, in, out, act_.head_staged, Write::kOver);
      op.push.matmul.of_outputs = 1;
      ops_.toHead(op);
    }));
    if (ops_.has(bias, 0)) {
      headChange(ops_.change(kChangeAdd, ops_.vector(bias, 0, out.cols), out));
    }
    return kOk;
  }

  // --- From the residual stream to logits, for the tokens that the step names ---------------------

  void outputNorm() {
    const Rows normed = {act_.head_normed, act_.embd_stride, model_.n_embd};
    Op op = ops_.streamNorm(TensorRole::kOutputNorm, 0, residual_, normed, model_.residual_eps,
                            Write::kOver);
    op.push.rms_norm.of_outputs = 1;
    op.push.rms_norm.scale = model_.logit_scale;
    ops_.toHead(op);
    loop_norm_ = op;
    loop_norm_.bindings[kOpOut] = residual_.place;
    loop_norm_.push.rms_norm.of_outputs = 0;
    loop_norm_.push.rms_norm.scale = 1;
    plan_->norm_ops = 1;
    if (ops_.has(TensorRole::kOutputNormBias, 0)) {
      headChange(ops_.change(kChangeAdd, ops_.vector(TensorRole::kOutputNormBias, 0, normed.cols),
                             normed));
      plan_->norm_ops = 2;
    }
    if (ops_.has(scaleOf(TensorRole::kOutput), 0)) {
      headChange(
          ops_.change(kChangeTimes, ops_.vector(scaleOf(TensorRole::kOutput), 0, 1), normed));
    }
  }
  void headChange(Op op) {
    op.push.add_bias.of_outputs = 1;
    ops_.toHead(op);
  }

  Status outputMatrix() {
    if (model_.tied_output) {
      return kOk;  // already done with the embedding
    }
    ORIEL_TRY(ops_.matrix(TensorRole::kOutput, model_.n_embd,
                          [&](const MatrixSlice& slice) { outputSlice(slice); }));
    return ops_.adapt({{TensorRole::kOutput, 0}},
                      {act_.head_normed, act_.embd_stride, model_.n_embd},
                      {act_.logits, model_.n_vocab, model_.n_vocab}, act_.head_staged,
                      /*head=*/true);
  }

  void outputSlice(const MatrixSlice& slice) {
    Op op =
        ops_.matmul(slice, {act_.head_normed, act_.embd_stride, model_.n_embd},
                    {act_.logits, model_.n_vocab, model_.n_vocab}, act_.head_staged, Write::kOver);
    op.push.matmul.of_outputs = 1;
    ops_.countHead(slice.place.size_bytes);
    ops_.toHead(op);
    if (n_head_slices_ < kMostHeadSlices) {
      head_slices_[n_head_slices_] = slice;
    }
    ++n_head_slices_;
  }

  void bestTokens() {
    if (ops_.has(TensorRole::kOutputBias, 0)) {
      headChange(ops_.change(kChangeAdd, ops_.vector(TensorRole::kOutputBias, 0, model_.n_vocab),
                             {act_.logits, model_.n_vocab, model_.n_vocab}));
    }
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

  // A batch has best tokens for every output, other lists only for the last.
  void toHeads(Op op) {
    ops_.toHeadAlone(op);
    op.push.top.all_outputs = 1;
    ops_.toBatchHead(op);
  }

  // --- The draft model ----------------------------------------------------------------------------

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
    ops_.countDraft(read_bytes, ops_.counts().read_bytes_per_token - read_bytes);
    return kOk;
  }

  // --- The prediction block: layer n_layers, after the model's own --------------------------------
  // It reads pairs: a token's embedding, and the vector after the model's last norm at the token before. It stores a key
  // and a value of every token's pair. Only a guess needs the rest of the layer.

  // The first half of the pairs. Rows of the body are in the residual stream before the first layer.
  Status predictionEmbedding() {
    const uint32_t block = model_.n_layers;
    const BufferRef weight = ops_.vector(TensorRole::kEmbeddingNorm, block, model_.n_embd);
    const Rows half = {act_.draft_in, act_.draft_in_stride, model_.n_embd};
    const bool own = ops_.has(TensorRole::kTokenEmbedding, block);
    if (own) {
      ops_.sendToDraft(OpList::Guesses::kAlso);
      ORIEL_TRY(ops_.matrices(MatrixParts({{TensorRole::kTokenEmbedding, block}}), model_.n_embd,
                              [&](const MatrixSlice& slice) {
                                Op op = embed(slice, pair_);
                                op.push.embed.scale = model_.embedding_scale;
                                ops_.toBody(op);
                                ops_.countRead(slice.first_row == 0 ? slice.geometry.rowBytes()
                                                                    : 0);
                              }));
      ops_.sendToDraft(OpList::Guesses::kNo);
    }
    ops_.toBody(ops_.norm(weight, own ? pair_ : residual_, half, model_.rms_eps, Write::kOver));
    ops_.toDraft(ops_.norm(weight, pair_, half, model_.rms_eps, Write::kOver));
    return kOk;
  }

  // Keys and values, from the pairs of a step's tokens or of a guess.
  Status readPairs() {
    const uint32_t block = model_.n_layers;
    const LayerKind& kind = model_.kind(block);
    const uint64_t read_bytes = ops_.counts().read_bytes_per_token;
    const Rows hidden = {act_.hidden, act_.hidden_stride, model_.n_embd};
    const Rows pairs = {act_.draft_in, act_.draft_in_stride, 2 * model_.n_embd};
    ops_.sendToDraft(OpList::Guesses::kAlso);
    Op before = ops_.make(OpKind::kTail,
                          {hidden.place, act_.device_step, hiddenRows(HiddenRows::kBefore, 1)});
    before.push.tail = {model_.n_embd, hidden.stride};
    ops_.toBody(before);
    Op last = loop_norm_;
    last.bindings[kOpOut] = hiddenRows(HiddenRows::kFirst, plan_->chunk_tokens);
    last.push.rms_norm.out_stride = hidden.stride;
    ops_.sendToDraft(OpList::Guesses::kNo);
    ops_.toBody(last);
    ops_.sendToDraft(OpList::Guesses::kAlso);
    Op norm =
        ops_.norm(TensorRole::kHiddenNorm, block, hidden, pairs, model_.rms_eps, Write::kOver);
    norm.push.rms_norm.out_first = model_.n_embd;
    ops_.toBody(norm);
    ORIEL_TRY(
        ops_.product({{TensorRole::kDraftIn, block}}, pairs, pair_, act_.queries, Write::kOver));
    ops_.toBody(
        ops_.norm(TensorRole::kAttentionNorm, block, pair_, normed_, model_.rms_eps, Write::kOver));
    ORIEL_TRY(ops_.product({{TensorRole::kKey, block}, {TensorRole::kValue, block}}, normed_,
                           {act_.qkv, act_.qkv_stride, 0}, act_.queries, Write::kOver));
    normHeads(TensorRole::kKeyNorm, block, kind, kind.n_kv_heads, 0);
    ops_.toBody(rope(block, 0, kind.n_kv_heads));
    ops_.sendToDraft(OpList::Guesses::kNo);
    ops_.endFill();
    pair_bytes_ = ops_.counts().read_bytes_per_token - read_bytes;
    return kOk;
  }

  // The rest of a guess. Writes its vector, which the next guess reads, and its logits.
  Status predict() {
    const uint32_t block = model_.n_layers;
    const LayerKind& kind = model_.kind(block);
    const uint64_t read_bytes = ops_.counts().read_bytes_per_token;
    const Rows qkv = {act_.qkv, act_.qkv_stride, 0};
    const uint32_t dim = kind.head_dim;
    ops_.sendToDraft(OpList::Guesses::kOnly);
    ORIEL_TRY(ops_.product({{TensorRole::kQuery, block, dim, 0, 2 * dim}}, normed_, qkv,
                           act_.queries, Write::kOver));
    ORIEL_TRY(ops_.product({{TensorRole::kQuery, block, dim, dim, 2 * dim}}, normed_,
                           gateRows(kind), act_.queries, Write::kOver));
    normHeads(TensorRole::kQueryNorm, block, kind, kind.n_heads, 0);
    ops_.toBody(rope(block, kind.n_heads, 0));
    attend(block, kind);
    gateHeads(kind);
    const Rows residual = residual_;
    residual_ = pair_;
    const Branch out = {TensorRole::kAttentionOut, TensorRole::kAttentionOutBias,
                        TensorRole::kAttentionPostNorm};
    ORIEL_TRY(addBranch(out, block, {act_.attended, act_.attended_stride, kind.attendedCols()},
                        act_.queries));
    ORIEL_TRY(feedForward(block));
    residual_ = residual;
    const Rows guess = {hiddenRows(HiddenRows{plan_->chunk_tokens}.guess(), 1), act_.hidden_stride,
                        model_.n_embd};
    const bool own_norm = ops_.has(TensorRole::kOutputNorm, block);
    ops_.toBody(ops_.norm(own_norm ? ops_.vector(TensorRole::kOutputNorm, block, model_.n_embd)
                                   : loop_norm_.bindings[3],
                          pair_, guess, model_.rms_eps, Write::kOver));
    const Rows logits = {act_.draft_logits, model_.n_vocab, model_.n_vocab};
    const auto score = [&](const MatrixSlice& slice) {
      ops_.toBody(ops_.matmul(slice, guess, logits, BufferRef(), Write::kOver));
    };
    const bool own_head = ops_.has(TensorRole::kOutput, block);
    if (own_head) {
      ORIEL_TRY(ops_.matrices(MatrixParts({{TensorRole::kOutput, block}}), model_.n_embd, score));
    }
    const uint64_t block_bytes = pair_bytes_ + ops_.counts().read_bytes_per_token - read_bytes;
    if (!own_head && n_head_slices_ > kMostHeadSlices) {
      return ORIEL_ERROR_UNSUPPORTED;  // then the block is not used
    }
    std::for_each_n(head_slices_, own_head ? 0 : n_head_slices_, score);
    ops_.countDraft(read_bytes, block_bytes);
    ops_.sendToDraft(OpList::Guesses::kNo);
    emitBestGuess(model_, act_, io_.top, &ops_);
    return kOk;
  }

  // Rows `first` to first + count - 1.
  BufferRef hiddenRows(uint32_t first, uint32_t count) const {
    const uint64_t row_bytes = sizeof(float) * uint64_t{act_.hidden_stride};
    return act_.hidden.part(first * row_bytes, count * row_bytes);
  }

  // ------------------------------------------------------------------------------------------------

  Memory memoryOfLayer(uint32_t layer) const {
    if (layer == model_.n_layers) {
      return predictionMemory(model_, plan_->cache);
    }
    return memoryOf(model_, plan_->cache, plan_->formats, model_.layers[layer].memory_of);
  }

  const ModelDesc& model_;
  const ActivationLayout& act_;
  const IoLayout& io_;
  Plan* plan_;
  OpList ops_;
  const RotationTables rotations_;
  BufferRef sides_[kMaxLayers][2];  // memories of the layers that own one
  BufferRef states_[kMaxLayers];
  Rows residual_;
  Rows normed_;
  // If LayerKind::hasBranches().
  Rows beside_;
  Rows branch_;
  Op loop_norm_;  ///< the last norm, between passes
  // For a prediction block.
  static constexpr uint32_t kMostHeadSlices = 16;
  Rows pair_;                                 ///< its residual stream
  uint64_t pair_bytes_ = 0;                   ///< weights that readPairs() reads
  MatrixSlice head_slices_[kMostHeadSlices];  ///< of the output matrix
  uint32_t n_head_slices_ = 0;
  Rows parallel_;  ///< input of the feed-forward in a parallel layer
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
