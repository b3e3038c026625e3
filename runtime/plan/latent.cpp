#include "plan/op_list.h"

namespace oriel_internal {
namespace {

// Let K map a latent to a head's key and V map it to a value. Then q . K c = (K^T q) . c, and the weighted sum of V c
// is V times the weighted sum of c. Kernels therefore read latents in stored form, once for all heads (DeepSeek-V2,
// section 2.1.2).
class LatentOps {
 public:
  LatentOps(uint32_t layer, const ModelDesc& model, const LatentPlaces& places, const Rows& in,
            OpList* ops)
      : layer_(layer),
        model_(model),
        kind_(model.kind(layer)),
        act_(places.activations),
        rotations_(places.rotations),
        memory_(places.memory),
        side_(places.side),
        in_(in),
        ops_(*ops) {}

  Status run() {
    ORIEL_TRY(compress());
    ORIEL_TRY(heads(keys(), {act_.query_heads, act_.query_heads_stride, 0}, kind_.head_dim,
                    {act_.latent_queries, act_.query_stride, 0}, queryCols()));
    rotateAndRemember();
    attend();
    return heads(values(), {act_.sums, act_.sums_stride, 0}, kind_.latent_dim,
                 {act_.attended, act_.attended_stride, 0}, kind_.value_dim);
  }

 private:
  // Words of a head's query for scores.
  uint32_t queryCols() const { return kind_.latent_dim + 2 * kind_.rope_dim; }
  bool isRounded() const { return memory_.formats[0] != KvFormat::kF16; }

  // The heads' queries, and the latent and key to store.
  Status compress() {
    const uint32_t query_cols = kind_.query_latent_dim;
    const Rows compressed = {act_.compressed, act_.compressed_stride, query_cols};
    const Rows query_heads = {act_.query_heads, act_.query_heads_stride, 0};
    if (query_cols == 0) {
      ORIEL_TRY(ops_.product({{TensorRole::kQuery, layer_}}, in_, query_heads, act_.latent_queries,
                             Write::kOver));
      ORIEL_TRY(ops_.product({{TensorRole::kLatentAndKey, layer_}}, in_, compressed,
                             act_.latent_queries, Write::kOver));
    } else {
      ORIEL_TRY(
          ops_.product({{TensorRole::kQueryLatent, layer_}, {TensorRole::kLatentAndKey, layer_}},
                       in_, compressed, act_.latent_queries, Write::kOver));
      norm(TensorRole::kQueryLatentNorm, query_cols, 0);
      ORIEL_TRY(ops_.product({{TensorRole::kQueryOfLatent, layer_}}, compressed, query_heads,
                             act_.latent_queries, Write::kOver));
    }
    norm(TensorRole::kLatentNorm, kind_.latent_dim, query_cols);
    return kOk;
  }

  void norm(TensorRole role, uint32_t cols, uint32_t first) {
    const Rows rows = {act_.compressed, act_.compressed_stride, cols};
    Op op = ops_.norm(role, layer_, rows, rows, model_.rms_eps, Write::kOver);
    op.push.rms_norm.first = op.push.rms_norm.out_first = first;
    ops_.toBody(op);
  }

  HeadMatrices keys() const {
    if (kind_.joined_latent) {
      return {{TensorRole::kLatentKeysValues, layer_},
              0,
              joinedRows(),
              kind_.plainDim(),
              kind_.latent_dim,
              kind_.n_heads,
              true};
    }
    return {{TensorRole::kLatentKeys, layer_},
            0,
            kind_.latent_dim,
            kind_.latent_dim,
            kind_.plainDim(),
            kind_.n_heads,
            false};
  }
  HeadMatrices values() const {
    if (kind_.joined_latent) {
      return {{TensorRole::kLatentKeysValues, layer_},
              kind_.plainDim(),
              joinedRows(),
              kind_.value_dim,
              kind_.latent_dim,
              kind_.n_heads,
              false};
    }
    return {{TensorRole::kLatentValues, layer_},
            0,
            kind_.value_dim,
            kind_.value_dim,
            kind_.latent_dim,
            kind_.n_heads,
            false};
  }
  uint32_t joinedRows() const { return kind_.plainDim() + kind_.value_dim; }

  // Multiplies each head's matrix by its own part of `in`.
  Status heads(const HeadMatrices& matrices, const Rows& in, uint32_t in_head, const Rows& out,
               uint32_t out_head) {
    return ops_.heads(matrices, [&](const StackSlice& slice) {
      Op op = ops_.make(OpKind::kHeadMatmul, {slice.place, act_.device_step, out.place, in.place});
      op.weights = slice.type;
      HeadMatmulPush& push = op.push.head_matmul;
      push.rows = matrices.transposed ? matrices.cols : matrices.rows;
      slice.geometry.describe(&push);
      push.in_stride = in.stride;
      push.in_head = in_head;
      push.out_stride = out.stride;
      push.out_head = out_head;
      push.out_first = out.first;
      push.first = slice.first;
      push.count = slice.count;
      ops_.toBody(op);
    });
  }

  void rotateAndRemember() {
    Op op = ops_.make(OpKind::kLatentAppend, {act_.query_heads, act_.device_step,
                                              act_.latent_queries, side_, act_.compressed});
    op.k_format = op.v_format = memory_.formats[0];
    LatentAppendPush& push = op.push.latent_append;
    push.n_heads = kind_.n_heads;
    push.latent_dim = kind_.latent_dim;
    push.rope_dim = kind_.rope_dim;
    push.pair_stride = model_.rope_pairing == RopePairing::kInterleaved ? 1 : kind_.rope_dim / 2;
    push.heads_stride = act_.query_heads_stride;
    push.head_dim = kind_.head_dim;
    push.vector_stride = act_.compressed_stride;
    push.vector_first = kind_.query_latent_dim;
    push.query_stride = act_.query_stride;
    push.sinks = memory_.shape.sinkRoom();
    push.all_sinks = memory_.shape.sinkSlots();
    push.view = memory_.view;
    push.rotation_stride = rotations_.words;
    const RotationTables::Of& tables = rotations_.ropes[kMainRope];
    const uint32_t first = static_cast<uint32_t>(
        stepRotationWord(ops_.plan().chunk_tokens, model_.n_views, rotations_.words, 0));
    push.key_rotation = first + tables.keys;
    push.query_rotation = first + tables.queries;
    push.sink_rotation = first + (memory_.shape.sinks != 0 ? tables.sinks : tables.queries);
    ops_.toBody(op);
    ops_.endFill();
  }

  void attend() {
    const CacheShape& shape = memory_.shape;
    Op op = ops_.make(OpKind::kLatentAttention,
                      {act_.latent_queries, act_.device_step, act_.sums, side_});
    op.k_format = op.v_format = memory_.formats[0];
    LatentAttentionPush& push = op.push.latent_attention;
    push.n_heads = kind_.n_heads;
    push.latent_dim = kind_.latent_dim;
    push.rope_dim = kind_.rope_dim;
    push.query_stride = act_.query_stride;
    push.view = memory_.view;
    push.sinks = shape.sinkRoom();
    push.all_sinks = shape.sinkSlots();
    push.ring = shape.ring;
    push.scale = kind_.attention_scale;
    ops_.attention(op, &Op::Push::latent_attention, kind_.latent_dim, shape,
                   {act_.sums, act_.sums_stride});
    if (isRounded()) {
      Op back = ops_.make(OpKind::kHadamard, {act_.sums, act_.device_step, act_.sums});
      back.push.hadamard = {kind_.n_heads, kind_.latent_dim, hadamardBlock(kind_.latent_dim),
                            act_.sums_stride};
      ops_.toBody(back);
    }
  }

  const uint32_t layer_;
  const ModelDesc& model_;
  const LayerKind& kind_;
  const ActivationLayout& act_;
  const RotationTables& rotations_;
  const Memory& memory_;
  const BufferRef& side_;
  const Rows in_;
  OpList& ops_;
};

}  // namespace

Status emitLatentAttention(uint32_t layer, const ModelDesc& model, const LatentPlaces& places,
                           const Rows& in, OpList* ops) {
  return LatentOps(layer, model, places, in, ops).run();
}

}  // namespace oriel_internal
