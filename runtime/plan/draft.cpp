// Read downwards from run(): from the token and the vector after the target's last norm to a guess, and to the vector
// for the next guess. Keys and values are the target's; the draft model stores none.
#include "plan/op_list.h"

namespace oriel_internal {
namespace {

class Draft {
 public:
  Draft(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
        const RotationTables& rotations, const DraftMemory* memories, OpList* ops)
      : model_(model),
        draft_(model.draft),
        act_(act),
        top_(top),
        rotations_(rotations),
        memories_(memories),
        ops_(*ops),
        first_(model.n_layers),
        residual_({act.draft_residual, act.draft_stride, draft_.n_embd}),
        normed_({act.draft_normed, act.draft_stride, draft_.n_embd}) {}

  Status run() {
    ORIEL_TRY(input());
    for (uint32_t layer = 0; layer < draft_.n_layers; ++layer) {
      ORIEL_TRY(attention(layer));
      ORIEL_TRY(feedForward(layer));
    }
    ops_.toDraft(ops_.norm(TensorRole::kOutputNorm, first_, residual_, normed_, draft_.rms_eps,
                           Write::kOver));
    ORIEL_TRY(product({{TensorRole::kDraftOut, first_}}, normed_,
                      {act_.head_normed, act_.embd_stride, 0}, Write::kOver));
    ORIEL_TRY(product({{TensorRole::kTokenEmbedding, first_}}, normed_,
                      {act_.draft_logits, model_.n_vocab, 0}, Write::kOver));
    emitBestGuess(model_, act_, top_, &ops_);
    return kOk;
  }

 private:
  // The vector of the row named by the step block follows the token's embedding.
  Status input() {
    const uint64_t half = sizeof(float) * uint64_t{model_.n_embd};
    BufferRef behind = act_.draft_in.resized(half);
    behind.offset_bytes += half;
    Op op = ops_.make(OpKind::kTail, {act_.head_normed, act_.device_step, behind});
    op.push.tail = {model_.n_embd, act_.embd_stride};
    ops_.toDraft(op);
    return product({{TensorRole::kDraftIn, first_}},
                   {act_.draft_in, act_.draft_in_stride, 2 * model_.n_embd}, residual_,
                   Write::kOver);
  }

  Status attention(uint32_t layer) {
    const DraftDesc::Layer& of = draft_.layers[layer];
    const Memory& memory = memories_[layer].memory;
    const uint32_t cols = of.n_heads * memory.shape.head_dim;
    norm(TensorRole::kAttentionNorm, layer);
    ORIEL_TRY(product({{TensorRole::kQuery, first_ + layer}}, normed_,
                      {act_.qkv, act_.qkv_stride, 0}, Write::kOver));
    const Rows heads = {act_.qkv, act_.qkv_stride, memory.shape.head_dim};
    Op op = ops_.norm(TensorRole::kQueryNorm, first_ + layer, heads, heads, draft_.rms_eps,
                      Write::kOver);
    op.push.rms_norm.rows = of.n_heads;
    ops_.toDraft(op);
    rotate(layer);
    attend(layer);
    return addBranch(TensorRole::kAttentionOut, TensorRole::kAttentionPostNorm, layer,
                     {act_.attended, act_.attended_stride, cols}, false);
  }

  void rotate(uint32_t layer) {
    const auto& [memory, sides] = memories_[layer];
    const LayerKind& kind = model_.kind(memory.layer);
    Op op = ops_.make(OpKind::kRopeAppend,
                      {act_.qkv, act_.device_step, act_.queries, sides[0], sides[1]});
    op.k_format = memory.formats[0];
    op.v_format = memory.formats[1];
    ops_.rotation(model_, kind, memory, rotations_, &op.push.rope_append);
    op.push.rope_append.n_heads = draft_.layers[layer].n_heads;
    op.push.rope_append.n_kv_heads = 0;
    ops_.toDraft(op);
  }

  void attend(uint32_t layer) {
    const auto& [memory, sides] = memories_[layer];
    Op op = ops_.make(OpKind::kAttention,
                      {act_.queries, act_.device_step, act_.attended, sides[0], sides[1]});
    op.k_format = memory.formats[0];
    op.v_format = memory.formats[1];
    AttentionPush& push = op.push.attention;
    push.n_heads = draft_.layers[layer].n_heads;
    push.n_kv_heads = memory.shape.n_kv_heads;
    push.head_dim = memory.shape.head_dim;
    push.query_stride = act_.query_stride;
    push.view = memory.view;
    push.sinks = memory.shape.sinkRoom();
    push.all_sinks = memory.shape.sinkSlots();
    push.ring = memory.shape.ring;
    push.scale = model_.kind(memory.layer).attention_scale;
    push.soft_cap = 0;
    ops_.attentionOfOne(op, &Op::Push::attention, memory.shape.head_dim, memory.shape,
                        {act_.attended, act_.attended_stride},
                        [this](const Op& part) { ops_.toDraft(part); });
  }

  Status feedForward(uint32_t layer) {
    const uint32_t n_ff = draft_.layers[layer].n_ff;
    norm(TensorRole::kFeedForwardNorm, layer);
    ORIEL_TRY(product({{TensorRole::kGate, first_ + layer}, {TensorRole::kUp, first_ + layer}},
                      normed_, {act_.gate_up, act_.gate_up_stride, 0}, Write::kOver));
    Op gated = ops_.make(OpKind::kGatedActivation, {act_.gate_up, act_.device_step, act_.gated});
    GatedActivationPush& push = gated.push.gated_activation;
    push = activationPush(model_, draft_.layers[layer].memory_of);
    push.cols = push.up_offset = n_ff;
    push.in_stride = act_.gate_up_stride;
    push.out_stride = act_.gated_stride;
    ops_.toDraft(gated);
    return addBranch(TensorRole::kDown, TensorRole::kFeedForwardPostNorm, layer,
                     {act_.gated, act_.gated_stride, n_ff}, true);
  }

  // residual += norm(matrix * in); scaled after the layer.
  Status addBranch(TensorRole matrix, TensorRole post_norm, uint32_t layer, const Rows& in,
                   bool last) {
    ORIEL_TRY(product({{matrix, first_ + layer}}, in, normed_, Write::kOver));
    Op add = ops_.norm(post_norm, first_ + layer, normed_, residual_, draft_.rms_eps, Write::kAdd);
    if (last) {
      add.bindings[add.n_bindings++] = ops_.vector(TensorRole::kLayerScale, first_ + layer, 1);
      add.push.rms_norm.has_factor = 1;
    }
    ops_.toDraft(add);
    return kOk;
  }

  void norm(TensorRole role, uint32_t layer) {
    ops_.toDraft(ops_.norm(role, first_ + layer, residual_, normed_, draft_.rms_eps, Write::kOver));
  }

  Status product(std::initializer_list<MatrixPart> parts, const Rows& in, const Rows& out,
                 Write write) {
    return ops_.matrices(parts, in.cols, [&](const MatrixSlice& slice) {
      ops_.toDraft(ops_.matmul(slice, in, out, BufferRef(), write));
    });
  }

  const ModelDesc& model_;
  const DraftDesc& draft_;
  const ActivationLayout& act_;
  const BufferRef top_;
  const RotationTables& rotations_;
  const DraftMemory* const memories_;
  OpList& ops_;
  const uint32_t first_;  // the first layer's index in the tensors
  const Rows residual_;
  const Rows normed_;
};

}  // namespace

Status emitDraft(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                 const RotationTables& rotations, const DraftMemory* memories, OpList* ops) {
  return Draft(model, act, top, rotations, memories, ops).run();
}

// A cap of logits is omitted: it does not change their order.
void emitBestGuess(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                   OpList* ops) {
  Op blocks = OpList::make(OpKind::kTopBlocks, {act.draft_logits, act.device_step, act.top_keys});
  blocks.push.top = {model.n_vocab, topBlocks(model.n_vocab), 0};
  ops->toDraft(blocks);
  Op best =
      OpList::make(OpKind::kTopTokens, {act.draft_logits, act.device_step, top, act.top_keys});
  best.push.top = blocks.push.top;
  ops->toDraft(best);
}

}  // namespace oriel_internal
