#include "plan/step_ops.h"

#include "plan/weight_placement.h"

namespace oriel {
namespace {

// Where a matrix multiplies to and from.
struct MatmulEnds {
  BufferRef in;
  uint32_t in_stride = 0;
  BufferRef out;
  uint32_t out_stride = 0;
  bool accumulate = false;
  BufferRef staged;  // of no bytes: none
};

class StepBuilder {
 public:
  StepBuilder(const GgufFile& file, const ModelDesc& model, const Log& log,
              const ActivationLayout& activations, const IoLayout& io, Plan* plan)
      : model_(model), act_(activations), io_(io), plan_(plan), weights_(file, model, log, plan) {}

  Status run() {
    ORIEL_TRY(embedding());
    for (uint32_t layer = 0; layer < model_.n_layers; ++layer) {
      ORIEL_TRY(attention(layer));
      ORIEL_TRY(feedForward(layer));
    }
    ORIEL_TRY(head());
    topTokens();
    return weights_.finish();
  }

  WeightCounts counts() const {
    return {weights_.bytes(), weights_.largestGroupBytes(), read_bytes_, head_bytes_};
  }

 private:
  void emitTo(StepList list, const Op& op) {
    const uint32_t i = static_cast<uint32_t>(list);
    if (plan_->ops[i] != nullptr) {
      plan_->ops[i][plan_->n_ops[i]] = op;
    }
    ++plan_->n_ops[i];
  }

  void emitBody(const Op& op) {
    emitTo(StepList::kDecode, op);
    emitTo(StepList::kChunk, op);
  }

  static Op makeOp(OpKind kind, uint32_t push_bytes, std::initializer_list<BufferRef> bindings) {
    Op op;
    op.kind = kind;
    op.push_bytes = push_bytes;
    for (const BufferRef& binding : bindings) {
      op.bindings[op.n_bindings++] = binding;
    }
    return op;
  }

  BufferRef vector(TensorRole role, uint32_t layer, uint32_t cols) {
    const BufferRef place = weights_.vector(role, layer, cols);
    read_bytes_ += place.size_bytes;
    return place;
  }

  Op matmulOp(const MatmulEnds& ends, const MatrixSlice& slice) {
    Op op = makeOp(OpKind::kMatmul, sizeof(MatmulPush),
                   {slice.place, act_.device_step, ends.out, ends.in});
    if (ends.staged.size_bytes != 0) {
      op.bindings[op.n_bindings++] = ends.staged;
    }
    op.weights = slice.type;
    MatmulPush& push = op.push.matmul;
    push.rows = slice.rows;
    push.units = slice.geometry.units;
    push.group_words = slice.geometry.groupWords();
    push.side_word = slice.geometry.sideWord();
    push.in_stride = ends.in_stride;
    push.out_stride = ends.out_stride;
    push.out_first = slice.first_row;
    push.accumulate = ends.accumulate ? 1 : 0;
    read_bytes_ += slice.place.size_bytes;
    return op;
  }

  Status matmul(std::initializer_list<MatrixPart> parts, uint32_t cols, const MatmulEnds& ends) {
    return weights_.matrix(parts, cols,
                           [&](const MatrixSlice& slice) { emitBody(matmulOp(ends, slice)); });
  }

  struct NormRows {
    BufferRef in;
    BufferRef out;
    uint32_t stride = 0;  // of a token, in both
    uint32_t cols = 0;
    uint32_t rows = 1;
    uint32_t first = 0;
    bool accumulate = false;
  };

  Op rmsNormOp(TensorRole role, uint32_t layer, const NormRows& norm) {
    const BufferRef weight = vector(role, layer, norm.cols);
    Op op = makeOp(OpKind::kRmsNorm, sizeof(RmsNormPush),
                   {norm.in, act_.device_step, norm.out, weight});
    RmsNormPush& push = op.push.rms_norm;
    push.cols = norm.cols;
    push.in_stride = norm.stride;
    push.out_stride = norm.stride;
    push.eps = model_.rms_eps;
    push.rows = norm.rows;
    push.first = norm.first;
    push.accumulate = norm.accumulate ? 1 : 0;
    return op;
  }

  // From one vector per token to another.
  Op rmsNormOp(TensorRole role, uint32_t layer, const BufferRef& in, const BufferRef& out) {
    NormRows norm;
    norm.in = in;
    norm.out = out;
    norm.stride = act_.embd_stride;
    norm.cols = model_.n_embd;
    return rmsNormOp(role, layer, norm);
  }

  // `rows` heads of every token's qkv, in place, if the architecture has such a norm.
  void headNorm(TensorRole role, uint32_t layer, uint32_t rows, uint32_t first) {
    if (hasTensor(model_, role)) {
      NormRows norm;
      norm.in = norm.out = act_.qkv;
      norm.stride = act_.qkv_stride;
      norm.cols = model_.head_dim;
      norm.rows = rows;
      norm.first = first;
      emitBody(rmsNormOp(role, layer, norm));
    }
  }

  // A product that is added to the residual, by way of a norm of its own if the architecture has
  // one; meanwhile the piece `unused` is.
  Status addProduct(TensorRole role, TensorRole post_norm, uint32_t layer, uint32_t cols,
                    const BufferRef& in, uint32_t in_stride, const BufferRef& unused) {
    const bool normed = hasTensor(model_, post_norm);
    MatmulEnds ends;
    ends.in = in;
    ends.in_stride = in_stride;
    ends.out = normed ? act_.normed : act_.residual;
    ends.out_stride = act_.embd_stride;
    ends.accumulate = !normed;
    ends.staged = act_.stagedAt(unused, in_stride, plan_->chunk_tokens);
    ORIEL_TRY(matmul({{role, layer}}, cols, ends));
    if (normed) {
      NormRows norm;
      norm.in = act_.normed;
      norm.out = act_.residual;
      norm.stride = act_.embd_stride;
      norm.cols = model_.n_embd;
      norm.accumulate = true;
      emitBody(rmsNormOp(post_norm, layer, norm));
    }
    return kOk;
  }

  void addBias(TensorRole role, uint32_t layer, uint32_t cols, uint32_t out_first) {
    Op op = makeOp(OpKind::kAddBias, sizeof(AddBiasPush),
                   {vector(role, layer, cols), act_.device_step, act_.qkv});
    op.push.add_bias = {cols, act_.qkv_stride, out_first};
    emitBody(op);
  }

  void headMatmul(const MatrixSlice& slice) {
    MatmulEnds ends;
    ends.in = act_.head_normed;
    ends.in_stride = act_.embd_stride;
    ends.out = act_.logits;
    ends.out_stride = model_.n_vocab;
    ends.staged = act_.stagedAt(act_.qkv, act_.embd_stride, 1);
    Op op = matmulOp(ends, slice);
    op.push.matmul.one_row = 1;
    head_bytes_ += slice.place.size_bytes;
    emitTo(StepList::kHead, op);
  }

  Status embedding() {
    Op head_norm = rmsNormOp(TensorRole::kOutputNorm, 0, act_.residual, act_.head_normed);
    head_norm.push.rms_norm.head_row_only = 1;
    emitTo(StepList::kHead, head_norm);
    const auto embed = [&](const MatrixSlice& slice) {
      Op op =
          makeOp(OpKind::kEmbed, sizeof(EmbedPush), {slice.place, act_.device_step, act_.residual});
      op.weights = slice.type;
      EmbedPush& push = op.push.embed;
      push.cols = model_.n_embd;
      push.group_words = slice.geometry.groupWords();
      push.side_word = slice.geometry.sideWord();
      push.first_row = slice.first_row;
      push.rows = slice.rows;
      push.out_stride = act_.embd_stride;
      push.scale = model_.embedding_scale;
      emitBody(op);
      if (model_.tied_output) {
        headMatmul(slice);
      } else if (slice.first_row == 0) {
        read_bytes_ += slice.geometry.rowBytes();
      }
    };
    return weights_.matrix({{TensorRole::kTokenEmbedding, 0}}, model_.n_embd, embed);
  }

  Status head() {
    if (model_.tied_output) {
      return kOk;
    }
    return weights_.matrix({{TensorRole::kOutput, 0}}, model_.n_embd,
                           [&](const MatrixSlice& slice) { headMatmul(slice); });
  }

  void topTokens() {
    const TopPush push = {model_.n_vocab, topBlocks(model_.n_vocab)};
    Op blocks =
        makeOp(OpKind::kTopBlocks, sizeof(TopPush), {act_.logits, act_.device_step, act_.top_keys});
    blocks.push.top = push;
    emitTo(StepList::kHead, blocks);
    Op best = makeOp(OpKind::kTopTokens, sizeof(TopPush),
                     {act_.logits, act_.device_step, io_.top, act_.top_keys});
    best.push.top = push;
    emitTo(StepList::kHead, best);
  }

  AttentionPush attentionPush(const CacheShape& cache, bool local, uint32_t splits,
                              uint32_t split_slots, uint32_t out_stride) const {
    AttentionPush push = {};
    push.n_heads = model_.n_heads;
    push.n_kv_heads = model_.n_kv_heads;
    push.head_dim = model_.head_dim;
    push.query_stride = act_.query_stride;
    push.out_stride = out_stride;
    push.chunk = plan_->chunk_tokens;
    push.sinks = cache.sinks;
    push.ring = cache.ring;
    push.splits = splits;
    push.split_slots = split_slots;
    push.scale = model_.attention_scale;
    push.local = local ? 1 : 0;
    return push;
  }

  RopeAppendPush ropeAppendPush(const CacheShape& cache, uint32_t layer) const {
    RopeAppendPush push = {};
    push.n_heads = model_.n_heads;
    push.n_kv_heads = model_.n_kv_heads;
    push.head_dim = model_.head_dim;
    push.rope_dims = model_.ropeDims(layer);
    push.pair_stride = model_.rope_pairing == RopePairing::kInterleaved ? 1 : model_.rope_dims / 2;
    push.qkv_stride = act_.qkv_stride;
    push.query_stride = act_.query_stride;
    push.chunk = plan_->chunk_tokens;
    push.sinks = cache.sinks;
    push.ring = cache.ring;
    push.rotation_stride = rotationWords(model_);
    push.local = model_.isLocal(layer) ? 1 : 0;
    push.rotation = push.local != 0 ? kLocalTable * model_.rope_dims : 0;
    push.sink_rotation = push.local != 0 ? push.rotation : kSinkTable * model_.rope_dims;
    return push;
  }

  Status queriesKeysValues(uint32_t layer) {
    emitBody(rmsNormOp(TensorRole::kAttentionNorm, layer, act_.residual, act_.normed));
    MatmulEnds qkv;
    qkv.in = act_.normed;
    qkv.in_stride = act_.embd_stride;
    qkv.out = act_.qkv;
    qkv.out_stride = act_.qkv_stride;
    qkv.staged = act_.stagedAt(act_.queries, act_.embd_stride, plan_->chunk_tokens);
    if (hasTensor(model_, TensorRole::kQkv)) {
      ORIEL_TRY(matmul({{TensorRole::kQkv, layer}}, model_.n_embd, qkv));
    } else {
      ORIEL_TRY(matmul(
          {{TensorRole::kQuery, layer}, {TensorRole::kKey, layer}, {TensorRole::kValue, layer}},
          model_.n_embd, qkv));
    }
    const uint32_t query_cols = model_.n_heads * model_.head_dim;
    const uint32_t kv_cols = model_.n_kv_heads * model_.head_dim;
    if (hasTensor(model_, TensorRole::kQueryBias)) {
      addBias(TensorRole::kQueryBias, layer, query_cols, 0);
      addBias(TensorRole::kKeyBias, layer, kv_cols, query_cols);
      addBias(TensorRole::kValueBias, layer, kv_cols, query_cols + kv_cols);
    }
    headNorm(TensorRole::kQueryNorm, layer, model_.n_heads, 0);
    headNorm(TensorRole::kKeyNorm, layer, model_.n_kv_heads, query_cols);
    return kOk;
  }

  Status attention(uint32_t layer) {
    ORIEL_TRY(queriesKeysValues(layer));
    const CacheShape cache = layerShape(model_, plan_->cache, layer);
    const bool local = model_.isLocal(layer);
    const KvFormat k_format = plan_->formats.keys(layer);
    const KvFormat v_format = plan_->formats.values(layer);
    const BufferRef keys = cache_pieces_.take(sideLayout(k_format, cache).bytes);
    const BufferRef values = cache_pieces_.take(sideLayout(v_format, cache).bytes);
    const auto withFormats = [&](Op op) {
      op.k_format = k_format;
      op.v_format = v_format;
      return op;
    };
    Op append = makeOp(OpKind::kRopeAppend, sizeof(RopeAppendPush),
                       {act_.qkv, act_.device_step, act_.queries, keys, values});
    append.push.rope_append = ropeAppendPush(cache, layer);
    emitBody(withFormats(append));

    // A chunk has work enough without sharing a head; one token has not.
    const AttentionSplit split = decodeSplit(cache);
    Op whole = makeOp(OpKind::kAttention, sizeof(AttentionPush),
                      {act_.queries, act_.device_step, act_.attended, keys, values});
    whole.push.attention =
        attentionPush(cache, local, 1, cache.sinks + cache.window, act_.attended_stride);
    emitTo(StepList::kChunk, withFormats(whole));
    if (split.splits == 1) {
      emitTo(StepList::kDecode, withFormats(whole));
    } else {
      Op part = makeOp(OpKind::kAttention, sizeof(AttentionPush),
                       {act_.queries, act_.device_step, act_.partials, keys, values});
      part.push.attention =
          attentionPush(cache, local, split.splits, split.split_slots,
                        model_.n_heads * split.splits * (model_.head_dim + kPartialExtra));
      emitTo(StepList::kDecode, withFormats(part));
      Op merge = makeOp(OpKind::kAttentionMerge, sizeof(AttentionMergePush),
                        {act_.partials, act_.device_step, act_.attended});
      merge.push.attention_merge = {model_.n_heads, model_.head_dim,   act_.attended_stride,
                                    split.splits,   split.split_slots, local ? 1u : 0u};
      emitTo(StepList::kDecode, merge);
    }
    return addProduct(TensorRole::kAttentionOut, TensorRole::kAttentionPostNorm, layer,
                      model_.n_heads * model_.head_dim, act_.attended, act_.attended_stride,
                      act_.queries);
  }

  Status feedForward(uint32_t layer) {
    emitBody(rmsNormOp(TensorRole::kFeedForwardNorm, layer, act_.residual, act_.normed));
    MatmulEnds gate_up;
    gate_up.in = act_.normed;
    gate_up.in_stride = act_.embd_stride;
    gate_up.out = act_.gate_up;
    gate_up.out_stride = act_.gate_up_stride;
    gate_up.staged = act_.stagedAt(act_.gated, act_.embd_stride, plan_->chunk_tokens);
    if (hasTensor(model_, TensorRole::kGateUp)) {
      ORIEL_TRY(matmul({{TensorRole::kGateUp, layer}}, model_.n_embd, gate_up));
    } else {
      ORIEL_TRY(
          matmul({{TensorRole::kGate, layer}, {TensorRole::kUp, layer}}, model_.n_embd, gate_up));
    }

    Op gated = makeOp(OpKind::kGatedActivation, sizeof(GatedActivationPush),
                      {act_.gate_up, act_.device_step, act_.gated});
    gated.push.gated_activation = {model_.n_ff, act_.gate_up_stride, model_.n_ff, act_.gated_stride,
                                   model_.gelu ? 1u : 0u};
    emitBody(gated);
    return addProduct(TensorRole::kDown, TensorRole::kFeedForwardPostNorm, layer, model_.n_ff,
                      act_.gated, act_.gated_stride, act_.gate_up);
  }

  const ModelDesc& model_;
  const ActivationLayout& act_;
  const IoLayout& io_;
  Plan* plan_;
  WeightPlacement weights_;
  PieceCounter cache_pieces_{ArenaKind::kCache, 0};
  uint64_t read_bytes_ = 0;
  uint64_t head_bytes_ = 0;
};

}  // namespace

Status emitSteps(const GgufFile& file, const ModelDesc& model, const Log& log,
                 const ActivationLayout& activations, const IoLayout& io, Plan* plan,
                 WeightCounts* counts) {
  StepBuilder builder(file, model, log, activations, io, plan);
  ORIEL_TRY(builder.run());
  *counts = builder.counts();
  return kOk;
}

}  // namespace oriel
