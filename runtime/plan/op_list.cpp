#include "plan/op_list.h"

namespace oriel_internal {

Status OpList::product(const MatrixParts& parts, const Rows& in, const Rows& out,
                       const BufferRef& staged, Write write) {
  const BufferRef other = act_.stagedAt(staged, in.stride, plan_->chunk_tokens);
  if (write == Write::kAdd) {
    addScale(parts.begin()->role, parts.begin()->layer, in);
  }
  ORIEL_TRY(weights_.matrix(parts, in.cols, [&](const MatrixSlice& slice) {
    toBody(matmul(slice, in, out, other, write));
  }));
  Rows scaled = out;
  for (const MatrixPart& part : parts) {
    scaled.cols = part.rows(tensors_.find(part.role, part.layer));
    if (write == Write::kOver) {
      addScale(part.role, part.layer, scaled);
    }
    scaled.first += scaled.cols;
  }
  return adapt(parts, in, out, other, /*head=*/false);
}

Op OpList::matmul(const MatrixSlice& slice, const Rows& in, const Rows& out,
                  const BufferRef& staged, Write write) {
  Op op = make(OpKind::kMatmul, {slice.place, act_.device_step, out.place, in.place});
  if (staged.size_bytes != 0) {
    op.bindings[op.n_bindings++] = staged;
  }
  op.weights = slice.type;
  MatmulPush& push = op.push.matmul;
  push.rows = slice.rows;
  slice.geometry.describe(&push);
  push.in_stride = in.stride;
  push.out_stride = out.stride;
  push.out_first = out.first + slice.first_row;
  push.accumulate = write == Write::kAdd ? 1 : 0;
  (void)counted(slice.place);
  return op;
}

Op OpList::norm(const BufferRef& weight, const Rows& in, const Rows& out, float eps, Write write) {
  Op op = make(OpKind::kRmsNorm, {in.place, act_.device_step, out.place, weight});
  RmsNormPush& push = op.push.rms_norm;
  push.cols = in.cols;
  push.in_stride = in.stride;
  push.out_stride = out.stride;
  push.eps = eps;
  push.rows = 1;
  push.accumulate = write == Write::kAdd ? 1 : 0;
  push.scale = 1;
  push.centred = model_.layer_norms ? 1 : 0;
  return op;
}

void OpList::biasedNorm(TensorRole role, TensorRole bias, uint32_t layer, const Rows& in,
                        const Rows& out, Write write) {
  toBody(streamNorm(role, layer, in, out, model_.residual_eps, write));
  addBias(bias, layer, out);
}

void OpList::rotation(const ModelDesc& model, const LayerKind& kind, const Memory& memory,
                      const RotationTables& rotations, RopeAppendPush* push) const {
  push->n_heads = kind.n_heads;
  push->n_kv_heads = kind.n_kv_heads;
  push->head_dim = kind.head_dim;
  push->rope_dims = kind.rope == kNoRope ? 0 : model.ropes[kind.rope].dims;
  push->pair_stride = model.rope_pairing == RopePairing::kInterleaved || push->rope_dims == 0
                          ? 1
                          : push->rope_dims / 2;
  push->qkv_stride = act_.qkv_stride;
  push->query_stride = act_.query_stride;
  push->sinks = memory.shape.sinkRoom();
  push->all_sinks = memory.shape.sinkSlots();
  push->view = memory.view;
  push->rotation_stride = rotations.words;
  const RotationTables::Of tables = rotations.ropes[kind.rope == kNoRope ? kMainRope : kind.rope];
  const uint32_t first = static_cast<uint32_t>(
      stepRotationWord(plan_->chunk_tokens, model.n_views, rotations.words, 0));
  push->key_rotation = first + tables.keys;
  push->query_rotation = first + tables.queries;
  push->sink_rotation = first + (memory.shape.sinks != 0 ? tables.sinks : tables.queries);
}

void OpList::addScale(TensorRole matrix, uint32_t layer, const Rows& out) {
  if (has(scaleOf(matrix), layer)) {
    toBody(change(kChangeTimes, vector(scaleOf(matrix), layer, 1), out));
  }
}

void OpList::addBias(TensorRole role, uint32_t layer, const Rows& out) {
  if (has(role, layer)) {
    toBody(change(kChangeAdd, vector(role, layer, out.cols), out));
  }
}

void OpList::toDecode(const Op& op) {
  if (model_.encoder) {
    return;  // all steps consist of texts
  }
  if (guesses_ != Guesses::kNo) {
    toDraft(op);
  }
  if (guesses_ == Guesses::kOnly) {
    return;
  }
  emitTo(StepList::kDecode, op);
  if (plan_->batch_rows > 1) {
    emitTo(StepList::kBatch, op);
  }
  if (in_tail_) {
    emitTo(StepList::kTail, op);
  }
}

void OpList::toBody(const Op& op) {
  toDecode(op);
  toChunk(op);
}

void OpList::toHead(const Op& op) {
  toHeadAlone(op);
  toBatchHead(op);
}

Op OpList::make(OpKind kind, std::initializer_list<BufferRef> bindings) {
  Op op;
  op.kind = kind;
  op.push_bytes = static_cast<uint16_t>(opTraits(kind).push_bytes);
  for (const BufferRef& binding : bindings) {
    op.bindings[op.n_bindings++] = binding;
  }
  return op;
}

Op OpList::streamNorm(TensorRole role, uint32_t layer, const Rows& in, const Rows& out, float eps,
                      Write write) {
  Op op = model_.bare_norms ? norm(ones(in.cols), in, out, eps, write)
                            : norm(role, layer, in, out, eps, write);
  RmsNormPush& push = op.push.rms_norm;
  push.rows = model_.norm_groups;
  push.cols = in.cols / model_.norm_groups;
  push.weight_rows = model_.norm_groups > 1 ? 1 : 0;
  return op;
}

Op OpList::norm(TensorRole role, uint32_t layer, const Rows& in, const Rows& out, float eps,
                Write write) {
  return norm(vector(role, layer, in.cols), in, out, eps, write);
}

Op OpList::change(uint32_t how, const BufferRef& values, const Rows& out) const {
  Op op = make(OpKind::kAddBias, {values, act_.device_step, out.place});
  op.push.add_bias = {out.cols, out.stride, out.first, 0, how, 0};
  return op;
}

BufferRef OpList::ones(uint32_t cols) {
  if (ones_.size_bytes < 4ull * cols) {
    ones_ = weights_.ones(cols);
  }
  return counted(ones_);
}

BufferRef OpList::vector(TensorRole role, uint32_t layer, uint32_t cols) {
  return counted(weights_.vector(role, layer, cols));
}

BufferRef OpList::vectors(std::initializer_list<VectorPart> parts, uint32_t layer) {
  return counted(weights_.vectors(parts, layer));
}

void OpList::emitTo(StepList list, const Op& op) {
  const uint32_t i = static_cast<uint32_t>(list);
  if (plan_->ops[i] != nullptr) {
    plan_->ops[i][plan_->n_ops[i]] = op;
  }
  ++plan_->n_ops[i];
}

}  // namespace oriel_internal
