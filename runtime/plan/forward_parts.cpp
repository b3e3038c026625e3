// Read downwards from run(): from the token and the vector after the target's last norm to a guess, and to the vector
// for the next guess. Keys and values are the target's; the draft model stores none.
#include "plan/forward_parts.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kv/memory.h"
#include "model/tensor_index.h"
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
    best();
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

  // A cap of logits is omitted: it does not change their order.
  void best() {
    Op blocks = ops_.make(OpKind::kTopBlocks, {act_.draft_logits, act_.device_step, act_.top_keys});
    blocks.push.top = {model_.n_vocab, topBlocks(model_.n_vocab), 0};
    ops_.toDraft(blocks);
    Op best =
        ops_.make(OpKind::kTopTokens, {act_.draft_logits, act_.device_step, top_, act_.top_keys});
    best.push.top = blocks.push.top;
    ops_.toDraft(best);
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

namespace {

/// One tensor of the experts' matrices, with its optional tensors.
struct Part {
  TensorRole matrix;
  TensorRole bias;
  bool down;
  uint32_t rows;   ///< rows per expert
  uint32_t first;  ///< first output column
};
constexpr uint32_t kMostParts = 3;

/// The tensors of the router and of the selection.
struct RouteRoles {
  TensorRole router;
  TensorRole addend;
  TensorRole bias;
};

class ExpertOps {
 public:
  ExpertOps(uint32_t layer, const Experts& experts, const ActivationLayout& act, const IoLayout& io,
            const ExpertRows& rows, OpList* ops)
      : layer_(layer),
        experts_(experts),
        act_(act),
        ops_(*ops),
        rows_(rows),
        slots_(io.slots),
        routes_(slots_.size_bytes != 0 ? io.routes : act.routes),
        n_routes_(ops->plan().chunk_tokens * experts_.used) {
    gate_up_ = {act.expert_gate_up, act.expert_gate_up_stride, 0};
    gated_ = {act.expert_gated, act.expert_gated_stride, 0};
    out_ = {act.expert_out, act.embd_stride, 0};
  }

  Status run(const ModelDesc& model) {
    const LayerKind& kind = model.kind(layer_);
    const uint32_t n_ff = experts_.n_ff;
    if (ops_.has(TensorRole::kExpertGateUp, layer_)) {
      addPart({TensorRole::kExpertGateUp, kNoRole, false, 2 * n_ff, 0});
    } else {
      if (!kind.plain) {
        addPart({TensorRole::kExpertGate, TensorRole::kExpertGateBias, false, n_ff, 0});
      }
      addPart(
          {TensorRole::kExpertUp, TensorRole::kExpertUpBias, false, n_ff, kind.plain ? 0 : n_ff});
    }
    addPart({TensorRole::kExpertDown, TensorRole::kExpertDownBias, true, rows_.in.cols, 0});
    activation_ = activationPush(model, layer_);
    activation_.cols = activation_.up_offset = n_ff;
    ORIEL_TRY(route({TensorRole::kRouter, TensorRole::kRouterAddend, TensorRole::kRouterBias}));
    ORIEL_TRY(slots_.size_bytes != 0 ? onFile() : held());
    combine(out_);
    return kOk;
  }

  // Activates the rows of one matrix and adds them up.
  Status values() {
    addPart({TensorRole::kValueExperts, kNoRole, false, rows_.out.cols, 0});
    activation_ = {};
    activation_.cols = rows_.out.cols;
    activation_.plain = 1;
    activation_.scale = 1;
    ORIEL_TRY(route({TensorRole::kValueRouter, kNoRole, TensorRole::kValueRouterBias}));
    ORIEL_TRY(held());
    changes(false, [&](const Op& op) { ops_.toBody(op); });
    ops_.toBody(activation());
    combine(gated_);
    return kOk;
  }

 private:
  void addPart(const Part& part) { parts_[n_parts_++] = part; }

  Status route(const RouteRoles& roles) {
    const Rows scores = {act_.scores, act_.scores_stride, experts_.count};
    if (rows_.routed.cols != 0) {
      ORIEL_TRY(ops_.product({{roles.router, layer_}}, rows_.routed, scores, act_.expert_gated,
                             Write::kOver));
    }
    ops_.addBias(roles.addend, layer_, scores);
    Op op = ops_.make(OpKind::kRoute, {scores.place, act_.device_step, routes_});
    const bool has_bias = ops_.has(roles.bias, layer_);
    if (has_bias) {
      op.bindings[op.n_bindings++] = ops_.vector(roles.bias, layer_, experts_.count);
    }
    op.push.route = {experts_.count,
                     experts_.used,
                     scores.stride,
                     n_routes_,
                     experts_.sigmoid ? 1u : 0u,
                     experts_.normalised ? 1u : 0u,
                     has_bias ? 1u : 0u,
                     experts_.scale,
                     experts_.groups,
                     experts_.used_groups};
    ops_.toBody(op);
    Op sort = ops_.make(OpKind::kSortRoutes, {routes_, act_.device_step, routes_});
    sort.push.sort_routes = {experts_.count, experts_.used, n_routes_};
    ops_.toBody(sort);
    return kOk;
  }

  // Here all experts have a place on the device.
  Status held() {
    for (uint32_t i = 0; i < n_parts_; ++i) {
      const Part& part = parts_[i];
      if (part.down) {
        changes(false, [&](const Op& op) { ops_.toBody(op); });
        ops_.toBody(activation());
      }
      ORIEL_TRY(ops_.experts({part.matrix, layer_}, experts_, part.rows, colsOf(part),
                             [&](const StackSlice& slice) { ops_.toBody(product(part, slice)); }));
      ORIEL_TRY(adapt(part));
    }
    changes(true, [&](const Op& op) { ops_.toBody(op); });
    return kOk;
  }

  // out += gate * B (A in) for each expert, indexed by place.
  Status adapt(const Part& part) {
    const Adapters* const all = ops_.adapters();
    for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
      OpList::Pair pair;
      if (!ops_.pairOf(i, {part.matrix, layer_}, &pair)) {
        continue;
      }
      const Rows thin = {act_.thin, act_.thin_expert_stride, pair.rank};
      for (const bool wide : {false, true}) {
        const uint32_t rows = wide ? part.rows : pair.rank;
        const uint32_t cols = wide ? pair.rank : colsOf(part);
        ORIEL_TRY(ops_.experts(
            wide ? pair.b : pair.a, experts_, rows, cols,
            [&](const StackSlice& slice) { ops_.toBody(adapted(part, slice, thin, rows, wide)); }));
        if (!wide) {
          Op gated =
              ops_.make(OpKind::kExpertBias, {thin.place, act_.device_step, thin.place, routes_});
          gated.push.expert_bias = {pair.rank, experts_.used, n_routes_, thin.stride,
                                    0,         kChangeGated,  0,         0};
          ops_.gate(i, all->factorOf(i, pair.rank), &gated.push.expert_bias);
          ops_.toBody(gated);
        }
      }
    }
    return kOk;
  }
  // Emits the product with A, or (`wide`) with B.
  Op adapted(const Part& part, const StackSlice& slice, const Rows& thin, uint32_t rows,
             bool wide) const {
    Op op = product(part, slice);
    ExpertMatmulPush& push = op.push.expert_matmul;
    push.rows = rows;
    if (wide) {
      op.bindings[kMatmulInput] = thin.place;
      push.in_stride = thin.stride;
      push.of_tokens = 0;
      push.accumulate = 1;
    } else {
      op.bindings[kOpOut] = thin.place;
      push.out_stride = thin.stride;
      push.out_first = 0;
    }
    return op;
  }

  // Emits the biases and scales of products: of the last ones (`down`), or of the earlier ones.
  template <typename Emit>
  void changes(bool down, const Emit& emit) {
    for (uint32_t i = 0; i < n_parts_; ++i) {
      const Part& part = parts_[i];
      const Rows& out = down ? out_ : gate_up_;
      if (part.down == down && ops_.has(scaleOf(part.matrix), layer_)) {
        emit(change(kChangeTimes, ops_.vector(scaleOf(part.matrix), layer_, experts_.count), part,
                    out));
      }
      if (part.down == down && ops_.has(part.bias, layer_)) {
        emit(change(kChangeAdd, ops_.vector(part.bias, layer_, experts_.count * part.rows), part,
                    out));
      }
    }
  }
  Op change(uint32_t how, const BufferRef& values, const Part& part, const Rows& out) const {
    Op op = ops_.make(OpKind::kExpertBias, {values, act_.device_step, out.place, routes_});
    op.push.expert_bias = {part.rows, experts_.used, n_routes_, out.stride, part.first, how};
    return op;
  }

  void combine(const Rows& from) {
    const Rows& out = rows_.out;
    Op op = ops_.make(OpKind::kExpertCombine, {from.place, act_.device_step, out.place, routes_});
    op.push.expert_combine = {out.cols,
                              experts_.used,
                              n_routes_,
                              from.stride,
                              out.stride,
                              out.first,
                              rows_.write == Write::kAdd ? 1u : 0u};
    ops_.toBody(op);
  }

  // Slots hold only some of the experts. One token's experts always fit; a chunk takes as many rounds as needed.
  Status onFile() {
    StackSlice slices[kMostParts];
    ExpertsOnFile file;
    file.count = experts_.count;
    file.used = experts_.used;
    for (uint32_t i = 0; i < n_parts_; ++i) {
      ORIEL_TRY(ops_.expertSlots({parts_[i].matrix, layer_}, experts_, parts_[i].rows,
                                 colsOf(parts_[i]), &slices[i], &file.parts[i]));
    }
    const uint32_t number = ops_.plan().n_expert_layers;
    ops_.expertsOnFile(file);
    const uint32_t rounds =
        static_cast<uint32_t>(ceilDiv(experts_.count, ops_.plan().on_file.expert_slots));
    Op changed[2][2 * kMostParts];
    uint32_t n_changed[2] = {};
    for (const bool down : {false, true}) {
      changes(down, [&](const Op& op) { changed[down][n_changed[down]++] = op; });
    }
    for (uint32_t round = 0; round < rounds; ++round) {
      const auto emit = [&](const Op& op) {
        ops_.toChunk(op);
        if (round == 0) {
          ops_.toDecode(op);
        }
      };
      Op fetch = ops_.make(OpKind::kFetchExperts, {routes_, act_.device_step, slots_});
      fetch.push.fetch_experts = {number, round};
      emit(fetch);
      for (uint32_t i = 0; i < n_parts_; ++i) {
        if (parts_[i].down) {
          // Rows for experts of other rounds are computed in their own round.
          std::for_each(changed[0], changed[0] + n_changed[0], emit);
          emit(activation());
        }
        emit(product(parts_[i], slices[i]));
      }
    }
    std::for_each(changed[1], changed[1] + n_changed[1], [&](const Op& op) { ops_.toBody(op); });
    return kOk;
  }

  uint32_t colsOf(const Part& part) const { return part.down ? experts_.n_ff : rows_.in.cols; }

  Op product(const Part& part, const StackSlice& slice) const {
    const Rows& in = part.down ? gated_ : rows_.in;
    const Rows& out = part.down ? out_ : gate_up_;
    Op op = ops_.make(OpKind::kExpertMatmul,
                      {slice.place, act_.device_step, out.place, in.place, routes_});
    if (slots_.size_bytes != 0) {
      op.bindings[op.n_bindings++] = slots_;
    }
    op.weights = slice.type;
    ExpertMatmulPush& push = op.push.expert_matmul;
    push.rows = part.rows;
    slice.geometry.describe(&push);
    push.in_stride = in.stride;
    push.out_stride = out.stride;
    push.out_first = part.first;
    push.n_experts = experts_.count;
    push.n_used = experts_.used;
    push.routes = n_routes_;
    push.of_tokens = part.down ? 0 : 1;
    push.first = slice.first;
    push.count = slice.count;
    push.has_slots = slots_.size_bytes != 0 ? 1 : 0;
    return op;
  }

  Op activation() const {
    Op op = ops_.make(OpKind::kGatedActivation, {gate_up_.place, act_.device_step, gated_.place});
    op.push.gated_activation = activation_;
    op.push.gated_activation.in_stride = gate_up_.stride;
    op.push.gated_activation.out_stride = gated_.stride;
    op.push.gated_activation.rows_per_token = experts_.used;
    return op;
  }

  const uint32_t layer_;
  const Experts& experts_;
  const ActivationLayout& act_;
  OpList& ops_;
  const ExpertRows rows_;
  const BufferRef slots_;
  const BufferRef routes_;
  const uint32_t n_routes_;
  Part parts_[kMostParts] = {};
  uint32_t n_parts_ = 0;
  GatedActivationPush activation_ = {};
  Rows gate_up_;
  Rows gated_;
  Rows out_;
};

}  // namespace

Status emitExperts(uint32_t layer, const ModelDesc& model, const ActivationLayout& activations,
                   const IoLayout& io, const ExpertRows& rows, OpList* ops) {
  return ExpertOps(layer, model.kind(layer).experts, activations, io, rows, ops).run(model);
}

Status emitValueExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                        const IoLayout& io, const Rows& in, const Rows& out, OpList* ops) {
  IoLayout held = io;  // these experts stay in device memory
  held.slots = held.routes = BufferRef();
  const ExpertRows rows = {in, in, out, Write::kOver};
  return ExpertOps(layer, kind.value_experts, activations, held, rows, ops).values();
}

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

// Adapters in the forward pass: two thin products per adapted matrix, with a gate between them.

bool OpList::pairOf(uint32_t adapter, const MatrixPart& part, Pair* pair) const {
  pair->a = {part.role, model_.adapters->layerOf(adapter, 0, part.layer)};
  pair->b = part;  // with the same selection of rows
  pair->b.layer = model_.adapters->layerOf(adapter, 1, part.layer);
  pair->rank = static_cast<uint32_t>(tensors_.find(part.role, pair->b.layer).dims[0]);
  return tensors_.has(part.role, pair->b.layer);
}

Status OpList::adapt(const MatrixParts& parts, const Rows& in, const Rows& out,
                     const BufferRef& staged, bool head) {
  for (uint32_t i = 0; model_.adapters != nullptr && i < model_.adapters->count; ++i) {
    ORIEL_TRY(adaptWith(i, parts, in, out, staged, head));
  }
  return kOk;
}

// All matrices A read the same rows, so their products come first, in one op.
Status OpList::adaptWith(uint32_t adapter, const MatrixParts& parts, const Rows& in,
                         const Rows& out, const BufferRef& staged, bool head) {
  const Adapters& all = *model_.adapters;
  Pair pairs[MatrixParts::kMost];
  uint32_t firsts[MatrixParts::kMost] = {};  // columns of `thin`
  uint32_t n = 0;
  uint32_t cols = 0;
  bool alike = true;  // all ranks are equal
  float factor = 1;
  for (const MatrixPart& part : parts) {
    Pair& pair = pairs[n];
    firsts[n] = cols;
    if (pairOf(adapter, part, &pair)) {
      uint32_t same = 0;  // two parts may be rows of one matrix
      while (same != n && !(pairs[same].rank != 0 && pairs[same].a.role == part.role)) {
        ++same;
      }
      if (same != n) {
        firsts[n] = firsts[same];
      } else {
        const Rows thin = {act_.thin, act_.thin_stride, pair.rank, cols};
        ORIEL_TRY(weights_.matrix(MatrixParts({pair.a}), in.cols, [&](const MatrixSlice& slice) {
          Op op = matmul(slice, in, thin, staged, Write::kOver);
          op.push.matmul.of_outputs = head ? 1 : 0;
          head ? toHead(op) : toBody(op);
        }));
        alike = alike && (cols == 0 || all.factorOf(adapter, pair.rank) == factor);
        factor = all.factorOf(adapter, pair.rank);
        cols += static_cast<uint32_t>(alignUp(pair.rank, kThinColumns));
      }
    } else {
      pair.rank = 0;
    }
    ++n;
  }
  if (alike && cols != 0) {
    gateThin(adapter, factor, 0, cols, head);
  }
  Rows to = out;
  for (uint32_t i = 0; i < n; ++i) {
    const MatrixPart& part = parts.begin()[i];
    to.cols = part.rows(tensors_.find(part.role, part.layer));
    if (pairs[i].rank != 0) {
      if (!alike) {
        gateThin(adapter, all.factorOf(adapter, pairs[i].rank), firsts[i], pairs[i].rank, head);
      }
      ORIEL_TRY(widen(pairs[i], firsts[i], to, head));
    }
    to.first += to.cols;
  }
  return kOk;
}

// thin_gated = gate * thin, in columns first .. first + cols - 1.
void OpList::gateThin(uint32_t adapter, float factor, uint32_t first, uint32_t cols, bool head) {
  const uint64_t begin = sizeof(float) * uint64_t{first};
  Op op = make(OpKind::kGatedNorm,
               {act_.thin.part(begin, act_.thin.size_bytes - begin), act_.device_step,
                act_.thin_gated.part(begin, act_.thin_gated.size_bytes - begin), act_.device_step});
  GatedNormPush& push = op.push.gated_norm;
  push.rows = push.gate_rows = 1;
  push.cols = cols;
  push.in_stride = push.out_stride = act_.thin_stride;
  push.gate = kGateStep;
  push.of_outputs = head ? 1 : 0;
  gate(adapter, factor, &push);
  head ? toHead(op) : toBody(op);
}

// out += B thin_gated
Status OpList::widen(const Pair& pair, uint32_t first, const Rows& out, bool head) {
  const uint64_t begin = sizeof(float) * uint64_t{first};
  const Rows in = {act_.thin_gated.part(begin, act_.thin_gated.size_bytes - begin),
                   act_.thin_stride, pair.rank};
  return weights_.matrix(MatrixParts({pair.b}), pair.rank, [&](const MatrixSlice& slice) {
    Op op = matmul(slice, in, out, BufferRef(), Write::kAdd);
    op.push.matmul.of_outputs = head ? 1 : 0;
    op.push.matmul.half_unit = pair.rank <= kUnit / 2 ? 1 : 0;
    head ? toHead(op) : toBody(op);
  });
}

// The token's id selects a row of A.
Status OpList::adaptEmbedding(const Rows& out) {
  const Adapters* const all = model_.adapters;
  for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
    Pair pair;
    if (!pairOf(i, {TensorRole::kTokenEmbedding, 0}, &pair)) {
      continue;
    }
    ORIEL_TRY(weights_.matrix(MatrixParts({pair.a}), pair.rank, [&](const MatrixSlice& slice) {
      Op op = make(OpKind::kEmbed, {slice.place, act_.device_step, act_.thin});
      op.weights = slice.type;
      op.push.embed = {pair.rank,
                       slice.geometry.groupWords(),
                       slice.geometry.sideWord(),
                       slice.first_row,
                       slice.rows,
                       act_.thin_stride,
                       1,
                       kEmbedIds,
                       0};
      toBody(op);
      countRead(slice.first_row == 0 ? slice.geometry.rowBytes() : 0);
    }));
    gateThin(i, all->factorOf(i, pair.rank) * model_.embedding_scale, 0, pair.rank, false);
    ORIEL_TRY(widen(pair, 0, out, false));
  }
  return kOk;
}

void OpList::steer(uint32_t layer, const Rows& out) {
  const Adapters* const all = model_.adapters;
  for (uint32_t i = 0; all != nullptr && i < all->count; ++i) {
    const uint32_t at = all->layerOf(i, 0, layer);
    if (has(TensorRole::kDirection, at)) {
      Op op = change(kChangeGated, vector(TensorRole::kDirection, at, out.cols), out);
      gate(i, all->list[i].stream_factor, &op.push.add_bias);
      toBody(op);
    }
  }
}

namespace {

// After the Hadamard rotation a head's largest value is near 2.5 |b| / sqrt(head_dim), where |b| is the norm of its
// bias. Rounding then moves every value by about largest / (127 sqrt(12)) in int8 and largest / (8 sqrt(12)) in int4.
// It moves a score by that times the query's typical value, which is a few units in models with such biases. For
// head_dim 64 these limits keep the shift below .05 and .15 per unit of query. (Qwen2: norm 22 in most layers, 605 and
// 921 in the first and last.)
constexpr double kInt8BiasNorm = 60.0;
constexpr double kInt4BiasNorm = 12.0;
constexpr double kNormHeadDim = 64.0;

// The lengths of normed keys and queries follow from the weights: sqrt(head_dim) times their root mean square. By the
// same estimate rounding moves a score by about this factor times both root mean squares, the scale of scores and
// sqrt(head_dim).
constexpr double kInt8Noise = 2.5 / (127 * 3.4641);
constexpr double kInt4Noise = 2.5 / (8 * 3.4641);
// Largest allowed shift of a score, as a standard deviation in nats. It equals the limits for biases when a query's
// values are between 2 and 3. A healthy head, whose scores deviate by 1 to 4, stays below it.
constexpr double kMostScoreNoise = 0.4;

// Requires `count` <= kMaxHeadDim.
Status length(const GgufFile& file, const GgufTensor& tensor, uint64_t first, uint32_t count,
              const Log& log, double* norm) {
  double values[kMostTensorValues];
  ORIEL_TRY(readValues(file, tensor, first, count, log, values));
  double square = 0;
  for (uint32_t i = 0; i < count; ++i) {
    square += values[i] * values[i];
  }
  *norm = std::sqrt(square);
  return kOk;
}

Status guardBiases(const GgufFile& file, const TensorIndex& tensors, const LayerKind& kind,
                   uint32_t layer, const Log& log, CacheFormats* formats) {
  const GgufTensor& bias = tensors.find(TensorRole::kKeyBias, layer);
  double largest = 0;
  for (uint32_t head = 0; head < kind.n_kv_heads; ++head) {
    double norm = 0;
    ORIEL_TRY(
        length(file, bias, static_cast<uint64_t>(head) * kind.head_dim, kind.head_dim, log, &norm));
    largest = std::max(largest, norm);
  }
  const double per_dim = std::sqrt(kind.head_dim / kNormHeadDim);
  if (largest > kInt8BiasNorm * per_dim) {
    formats->requireF16(layer);
  } else if (largest > kInt4BiasNorm * per_dim) {
    formats->requireInt8(layer);
  }
  return kOk;
}

// Length of the weights in the longest head. Norm weights shared by all heads have one length.
Status longestHead(const GgufFile& file, const GgufTensor& norm, const LayerKind& kind,
                   uint32_t heads, const Log& log, double* longest) {
  *longest = 0;
  for (uint32_t head = 0; head < (kind.row_norms ? heads : 1); ++head) {
    double found = 0;
    ORIEL_TRY(length(file, norm, static_cast<uint64_t>(head) * kind.head_dim, kind.head_dim, log,
                     &found));
    *longest = std::max(*longest, found);
  }
  return kOk;
}

Status guardNorms(const GgufFile& file, const TensorIndex& tensors, const LayerKind& kind,
                  uint32_t layer, const Log& log, CacheFormats* formats) {
  double key = 0;
  double query = 0;
  ORIEL_TRY(longestHead(file, tensors.find(TensorRole::kKeyNorm, layer), kind, kind.n_kv_heads, log,
                        &key));
  ORIEL_TRY(longestHead(file, tensors.find(TensorRole::kQueryNorm, layer), kind, kind.n_heads, log,
                        &query));
  // Product of both root mean squares, sqrt(head_dim) and the scale of scores.
  const double scores = key * query / std::sqrt(static_cast<double>(kind.head_dim)) *
                        static_cast<double>(kind.attention_scale);
  if (kInt8Noise * scores > kMostScoreNoise) {
    formats->requireF16(layer);
    formats->blameNorm(layer);
  } else if (kInt4Noise * scores > kMostScoreNoise) {
    formats->requireInt8(layer);
    formats->blameNorm(layer);
  }
  return kOk;
}

}  // namespace

Status guardKeys(const GgufFile& file, const TensorIndex& tensors, const ModelDesc& model,
                 const Log& log, CacheFormats* formats) {
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const LayerKind& kind = model.kind(layer);
    if (!isRounded(model, layer)) {
      continue;
    }
    if (tensors.has(TensorRole::kKeyBias, layer)) {
      ORIEL_TRY(guardBiases(file, tensors, kind, layer, log, formats));
    }
    if (tensors.has(TensorRole::kKeyNorm, layer) && tensors.has(TensorRole::kQueryNorm, layer)) {
      ORIEL_TRY(guardNorms(file, tensors, kind, layer, log, formats));
    }
  }
  return kOk;
}

}  // namespace oriel_internal
