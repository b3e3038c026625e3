#include "plan/plan.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "plan/memory_layout.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

// Half of the upload ring: large enough to keep a copy engine busy, small beside the weights.
constexpr uint64_t kMinUploadHalf = 64ull << 10;
constexpr uint64_t kMaxUploadHalf = 2ull << 20;
constexpr uint64_t kUploadShare = 32;

// Rows of a stacked matrix that come from one tensor of the file.
struct MatrixPart {
  TensorRole role;
  uint32_t layer;
};

// Where a matrix multiplies to and from.
struct MatmulEnds {
  BufferRef in;
  uint32_t in_stride = 0;
  BufferRef out;
  uint32_t out_stride = 0;
  bool accumulate = false;
  BufferRef staged;  // of no bytes: none
};

/// Walks the model once and emits placements, uploads and ops. Run with a plan without lists it only
/// counts.
class Builder {
 public:
  Builder(const GgufFile& file, const ModelDesc& model, const Log& log, const CacheShape& cache,
          const CacheFormats& formats, uint32_t chunk, const ActivationLayout& activations,
          const IoLayout& io, Plan* plan)
      : file_(file), model_(model), log_(log), cache_(cache), formats_(formats), chunk_(chunk),
        act_(activations), io_(io), plan_(plan) {}

  Status run() {
    plan_->device_step = act_.device_step;
    plan_->logits = act_.logits;
    ORIEL_TRY(embedding());
    for (uint32_t layer = 0; layer < model_.n_layers; ++layer) {
      ORIEL_TRY(attention(layer));
      ORIEL_TRY(feedForward(layer));
    }
    ORIEL_TRY(head());
    topTokens();
    closeSegment();
    return kOk;
  }

  uint64_t weightsBytes() const { return weights_bytes_; }
  uint64_t readBytes() const { return read_bytes_; }
  uint64_t headBytes() const { return head_bytes_; }
  uint64_t largestGroupBytes() const { return largest_group_bytes_; }

 private:
  enum : uint32_t { kBody = 1u << 0, kHeadList = 1u << 1 };

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

  // A place for `bytes` of weights, in the current segment or a new one.
  BufferRef placeWeights(uint64_t bytes) {
    if (alignUp(segment_used_ + bytes, kArenaGranularity) > kMaxAllocationBytes) {
      closeSegment();
    }
    const BufferRef place = {ArenaKind::kWeights, static_cast<uint8_t>(plan_->weight_segments),
                             segment_used_, bytes};
    segment_used_ = alignUp(segment_used_ + bytes, kBufferAlignment);
    return place;
  }

  void closeSegment() {
    if (segment_used_ == 0) {
      return;
    }
    const uint64_t bytes = alignUp(segment_used_, kArenaGranularity);
    if (plan_->weight_segment_bytes != nullptr) {
      plan_->weight_segment_bytes[plan_->weight_segments] = bytes;
    }
    ++plan_->weight_segments;
    weights_bytes_ += bytes;
    segment_used_ = 0;
  }

  void upload(const Upload& item) {
    if (plan_->uploads != nullptr) {
      plan_->uploads[plan_->n_uploads] = item;
    }
    ++plan_->n_uploads;
    const uint64_t group = item.is_vector ? vectorBytes(item.cols)
                                          : weightGeometry(item.type, item.cols).groupBytes();
    largest_group_bytes_ = std::max(largest_group_bytes_, group);
  }

  // A vector of weights as one float32 row.
  BufferRef vector(TensorRole role, uint32_t layer, uint32_t cols) {
    Upload item;
    item.role = role;
    item.layer = layer;
    item.rows = 1;
    item.cols = cols;
    item.is_vector = true;
    item.slice = placeWeights(vectorBytes(cols));
    upload(item);
    read_bytes_ += item.slice.size_bytes;
    return item.slice;
  }

  // Stacks the parts by rows, cuts the stack into slices of one type each that a kernel can bind, and
  // calls emit(slice, type, geometry, first_row, rows) for each.
  template <typename Emit>
  Status matrix(std::initializer_list<MatrixPart> parts, uint32_t cols, const Emit& emit) {
    uint32_t first_row = 0;
    const MatrixPart* part = parts.begin();
    while (part != parts.end()) {
      // A run of parts of one type.
      const uint32_t file_type = findTensor(file_, model_, part->role, part->layer).type;
      WeightType type;
      if (!weightTypeOf(file_type, &type)) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED, "tensor type %s has no kernel: convert the model",
                         tensorTypeName(file_type));
      }
      const WeightGeometry geometry = weightGeometry(type, cols);
      const uint32_t slice_rows = maxSliceRows(geometry);
      if (slice_rows == 0) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED, "rows of %u values are too long for a kernel",
                         cols);
      }
      const MatrixPart* end = part;
      uint64_t run_rows = 0;
      while (end != parts.end()) {
        const GgufTensor tensor = findTensor(file_, model_, end->role, end->layer);
        if (tensor.type != file_type) {
          break;
        }
        run_rows += tensor.dims[1];
        ++end;
      }
      uint32_t source_row = 0;
      for (uint64_t begin = 0; begin < run_rows; begin += slice_rows) {
        const uint32_t rows =
            static_cast<uint32_t>(std::min<uint64_t>(slice_rows, run_rows - begin));
        const BufferRef slice = placeWeights(geometry.sliceBytes(rows));
        for (uint32_t filled = 0; filled < rows;) {
          const GgufTensor tensor = findTensor(file_, model_, part->role, part->layer);
          Upload item;
          item.role = part->role;
          item.layer = part->layer;
          item.source_row = source_row;
          item.rows = std::min(rows - filled, static_cast<uint32_t>(tensor.dims[1]) - source_row);
          item.cols = cols;
          item.type = type;
          item.slice = slice;
          item.slice_row = filled;
          upload(item);
          filled += item.rows;
          source_row += item.rows;
          if (source_row == tensor.dims[1]) {
            source_row = 0;
            ++part;
          }
        }
        emit(slice, type, geometry, first_row, rows);
        first_row += rows;
      }
    }
    return kOk;
  }

  Op matmulOp(const MatmulEnds& ends, const BufferRef& slice, WeightType type,
              const WeightGeometry& geometry, uint32_t first_row, uint32_t rows) {
    Op op = makeOp(OpKind::kMatmul, sizeof(MatmulPush),
                   {slice, act_.device_step, ends.out, ends.in});
    if (ends.staged.size_bytes != 0) {
      op.bindings[op.n_bindings++] = ends.staged;
    }
    op.weights = type;
    MatmulPush& push = op.push.matmul;
    push.rows = rows;
    push.units = geometry.units;
    push.group_words = geometry.groupWords();
    push.side_word = geometry.sideWord();
    push.in_stride = ends.in_stride;
    push.out_stride = ends.out_stride;
    push.out_first = first_row;
    push.accumulate = ends.accumulate ? 1 : 0;
    read_bytes_ += slice.size_bytes;
    return op;
  }

  Status matmul(std::initializer_list<MatrixPart> parts, uint32_t cols, const MatmulEnds& ends) {
    return matrix(parts, cols,
                  [&](const BufferRef& slice, WeightType type, const WeightGeometry& geometry,
                      uint32_t first_row, uint32_t rows) {
                    emitBody(matmulOp(ends, slice, type, geometry, first_row, rows));
                  });
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

  // A product that is added to the residual, by way of a norm of its own if the architecture has one;
  // meanwhile the piece `unused` is.
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

  void headMatmul(const BufferRef& slice, WeightType type, const WeightGeometry& geometry,
                  uint32_t first_row, uint32_t rows) {
    MatmulEnds ends;
    ends.in = act_.head_normed;
    ends.in_stride = act_.embd_stride;
    ends.out = act_.logits;
    ends.out_stride = model_.n_vocab;
    ends.staged = act_.stagedAt(act_.qkv, act_.embd_stride, 1);
    Op op = matmulOp(ends, slice, type, geometry, first_row, rows);
    op.push.matmul.one_row = 1;
    head_bytes_ += slice.size_bytes;
    emitTo(StepList::kHead, op);
  }

  Status embedding() {
    Op head_norm = rmsNormOp(TensorRole::kOutputNorm, 0, act_.residual, act_.head_normed);
    head_norm.push.rms_norm.head_row_only = 1;
    emitTo(StepList::kHead, head_norm);
    return matrix(
        {{TensorRole::kTokenEmbedding, 0}}, model_.n_embd,
        [&](const BufferRef& slice, WeightType type, const WeightGeometry& geometry,
            uint32_t first_row, uint32_t rows) {
          Op op = makeOp(OpKind::kEmbed, sizeof(EmbedPush),
                         {slice, act_.device_step, act_.residual});
          op.weights = type;
          op.push.embed = {model_.n_embd,
                           geometry.groupWords(),
                           geometry.sideWord(),
                           first_row,
                           rows,
                           act_.embd_stride,
                           model_.embedding_scale};
          emitBody(op);
          if (model_.tied_output) {
            headMatmul(slice, type, geometry, first_row, rows);
          } else if (first_row == 0) {
            read_bytes_ += geometry.rowBytes();
          }
        });
  }

  Status head() {
    if (model_.tied_output) {
      return kOk;
    }
    return matrix({{TensorRole::kOutput, 0}}, model_.n_embd,
                  [&](const BufferRef& slice, WeightType type, const WeightGeometry& geometry,
                      uint32_t first_row, uint32_t rows) {
                    headMatmul(slice, type, geometry, first_row, rows);
                  });
  }

  void topTokens() {
    const TopPush push = {model_.n_vocab, topBlocks(model_.n_vocab)};
    Op blocks = makeOp(OpKind::kTopBlocks, sizeof(TopPush),
                       {act_.logits, act_.device_step, act_.top_keys});
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
    push.chunk = chunk_;
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
    push.pair_stride =
        model_.rope_pairing == RopePairing::kInterleaved ? 1 : model_.rope_dims / 2;
    push.qkv_stride = act_.qkv_stride;
    push.query_stride = act_.query_stride;
    push.chunk = chunk_;
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
    const CacheShape cache = layerShape(model_, cache_, layer);
    const bool local = model_.isLocal(layer);
    const KvFormat k_format = formats_.keys(layer);
    const KvFormat v_format = formats_.values(layer);
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
      part.push.attention = attentionPush(
          cache, local, split.splits, split.split_slots,
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
    gated.push.gated_activation = {model_.n_ff, act_.gate_up_stride, model_.n_ff,
                                   act_.gated_stride, model_.gelu ? 1u : 0u};
    emitBody(gated);
    return addProduct(TensorRole::kDown, TensorRole::kFeedForwardPostNorm, layer, model_.n_ff,
                      act_.gated, act_.gated_stride, act_.gate_up);
  }

  const GgufFile& file_;
  const ModelDesc& model_;
  const Log& log_;
  const CacheShape cache_;
  const CacheFormats& formats_;
  const uint32_t chunk_;
  const ActivationLayout& act_;
  const IoLayout& io_;
  Plan* plan_;
  PieceCounter cache_pieces_{ArenaKind::kCache, 0};
  uint64_t segment_used_ = 0;
  uint64_t weights_bytes_ = 0;
  uint64_t read_bytes_ = 0;
  uint64_t head_bytes_ = 0;
  uint64_t largest_group_bytes_ = 0;
};

}  // namespace

uint64_t uploadHalfBytes(uint64_t weights_bytes, uint64_t largest_group_bytes) {
  const uint64_t half = std::clamp(weights_bytes / kUploadShare, kMinUploadHalf, kMaxUploadHalf);
  return alignUp(std::max(half, largest_group_bytes), kBufferAlignment);
}

Status measureWeights(const GgufFile& file, const ModelDesc& model, const Log& log,
                      PlanTotals* totals) {
  // Nothing counted here depends on the cache, but for the merge op that a split window adds: count
  // with a window that is split.
  CacheShape cache = {model.n_kv_heads, model.head_dim, 0, 1u << 16, 1u << 16};
  const ActivationLayout activations = layoutActivations(model, cache, 1);
  const IoLayout io = layoutIo(model, 1, 0);
  Plan counted;
  const CacheFormats formats;
  Builder builder(file, model, log, cache, formats, 1, activations, io, &counted);
  ORIEL_TRY(builder.run());
  *totals = PlanTotals();
  totals->weights_bytes = builder.weightsBytes();
  totals->weight_segments = counted.weight_segments;
  totals->n_uploads = counted.n_uploads;
  for (uint32_t i = 0; i < kStepLists; ++i) {
    totals->n_ops[i] = counted.n_ops[i];
  }
  totals->upload_half_bytes = uploadHalfBytes(totals->weights_bytes, builder.largestGroupBytes());
  totals->weights_read_bytes_per_token = builder.readBytes();
  totals->head_read_bytes = builder.headBytes();
  if (counted.weight_segments > UINT8_MAX) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "the weights need %u GiB: use a smaller model",
                    counted.weight_segments);
  }
  return kOk;
}

Status buildPlan(const GgufFile& file, const ModelDesc& model, const PlanTotals& totals,
                 const CacheShape& cache, const CacheFormats& formats, uint32_t chunk,
                 const Log& log, Arena* arena, Plan* plan) {
  *plan = Plan();
  plan->cache = cache;
  plan->formats = formats;
  plan->chunk_tokens = chunk;
  const ActivationLayout activations = layoutActivations(model, cache, chunk);
  const IoLayout io = layoutIo(model, chunk, totals.upload_half_bytes);
  if (!cacheBytes(model, cache, formats, &plan->cache_bytes)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "a window of %u tokens needs more than %llu bytes in one layer: ask for less",
                    cache.window, static_cast<unsigned long long>(kMaxBindingBytes));
  }
  for (const BufferRef& piece : {activations.residual, activations.qkv, activations.queries,
                                 activations.partials, activations.gate_up, io.step}) {
    if (piece.size_bytes > kMaxBindingBytes) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED, "a chunk of %u tokens is too large: ask for less",
                      chunk);
    }
  }
  plan->activation_bytes = activations.bytes;
  plan->io_bytes = io.bytes;
  plan->step = io.step;
  plan->step_ahead = io.step_ahead;
  plan->top = io.top;
  plan->upload = io.upload;
  plan->step_decode_bytes = io.step_ahead.size_bytes;
  plan->weights_bytes = totals.weights_bytes;
  plan->weights_read_bytes_per_token = totals.weights_read_bytes_per_token;

  plan->weight_segment_bytes = arena->take<uint64_t>(totals.weight_segments);
  plan->uploads = arena->take<Upload>(totals.n_uploads);
  for (uint32_t i = 0; i < kStepLists; ++i) {
    plan->ops[i] = arena->take<Op>(totals.n_ops[i]);
    plan->op_capacity += totals.n_ops[i];
  }
  Builder builder(file, model, log, cache, formats, chunk, activations, io, plan);
  return builder.run();
}

}  // namespace oriel
