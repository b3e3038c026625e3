#include "plan/op_list.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
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

}  // namespace oriel_internal
