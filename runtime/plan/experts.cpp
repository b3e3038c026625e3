#include "plan/experts.h"

#include "base/checked.h"

namespace oriel_internal {
namespace {

enum : uint32_t { kGatePart, kUpPart, kDownPart, kParts };
constexpr TensorRole kRoles[kParts] = {TensorRole::kExpertGate, TensorRole::kExpertUp,
                                       TensorRole::kExpertDown};

class ExpertOps {
 public:
  ExpertOps(uint32_t layer, const LayerKind& kind, const ActivationLayout& act, const IoLayout& io,
            const Rows& in, OpList* ops)
      : layer_(layer),
        kind_(kind),
        experts_(kind.experts),
        act_(act),
        ops_(*ops),
        in_(in),
        slots_(io.slots),
        routes_(slots_.size_bytes != 0 ? io.routes : act.routes),
        n_routes_(ops->plan().chunk_tokens * experts_.used) {
    gate_up_ = {act.expert_gate_up, act.expert_gate_up_stride, experts_.n_ff};
    gated_ = {act.expert_gated, act.expert_gated_stride, experts_.n_ff};
    out_ = {act.expert_out, act.embd_stride, in.cols};
  }

  Status run(const Rows& out) {
    ORIEL_TRY(route());
    ORIEL_TRY(slots_.size_bytes != 0 ? onFile() : held());
    Op combine =
        ops_.make(OpKind::kExpertCombine, {out_.place, act_.device_step, out.place, routes_});
    combine.push.expert_combine = {out.cols, experts_.used, n_routes_, out_.stride, out.stride};
    ops_.toBody(combine);
    return kOk;
  }

 private:
  Status route() {
    const Rows scores = {act_.scores, act_.scores_stride, experts_.count};
    ORIEL_TRY(ops_.product({{TensorRole::kRouter, layer_}}, in_, scores, act_.expert_gated,
                           Write::kOver));
    Op op = ops_.make(OpKind::kRoute, {scores.place, act_.device_step, routes_});
    const bool has_bias = ops_.has(TensorRole::kRouterBias, layer_);
    if (has_bias) {
      op.bindings[op.n_bindings++] = ops_.vector(TensorRole::kRouterBias, layer_, experts_.count);
    }
    op.push.route = {experts_.count,
                     experts_.used,
                     scores.stride,
                     n_routes_,
                     experts_.sigmoid ? 1u : 0u,
                     experts_.normalised ? 1u : 0u,
                     has_bias ? 1u : 0u,
                     experts_.scale};
    ops_.toBody(op);
    Op sort = ops_.make(OpKind::kSortRoutes, {routes_, act_.device_step, routes_});
    sort.push.sort_routes = {experts_.count, experts_.used, n_routes_};
    ops_.toBody(sort);
    return kOk;
  }

  // All experts have their place.
  Status held() {
    for (uint32_t part = 0; part < kParts; ++part) {
      if (part == kDownPart) {
        ops_.toBody(activation());
      }
      ORIEL_TRY(ops_.experts({kRoles[part], layer_}, experts_, rowsOf(part), colsOf(part),
                             [&](const StackSlice& slice) { ops_.toBody(product(part, slice)); }));
    }
    return kOk;
  }

  // Some experts are in slots at a time. Those of one token always are; a chunk takes as many rounds as it may need.
  Status onFile() {
    StackSlice slices[kParts];
    ExpertsOnFile file;
    file.count = experts_.count;
    file.used = experts_.used;
    for (uint32_t part = 0; part < kParts; ++part) {
      ORIEL_TRY(ops_.expertSlots({kRoles[part], layer_}, experts_, rowsOf(part), colsOf(part),
                                 &slices[part], &file.parts[part]));
    }
    const uint32_t number = ops_.plan().n_expert_layers;
    ops_.expertsOnFile(file);
    const uint32_t rounds =
        static_cast<uint32_t>(ceilDiv(experts_.count, ops_.plan().on_file.expert_slots));
    for (uint32_t round = 0; round < rounds; ++round) {
      Op fetch = ops_.make(OpKind::kFetchExperts, {routes_, act_.device_step, slots_});
      fetch.push.fetch_experts = {number, round};
      const Op ops[] = {fetch, product(kGatePart, slices[kGatePart]),
                        product(kUpPart, slices[kUpPart]), activation(),
                        product(kDownPart, slices[kDownPart])};
      for (const Op& op : ops) {
        ops_.toChunk(op);
        if (round == 0) {
          ops_.toDecode(op);
        }
      }
    }
    return kOk;
  }

  uint32_t rowsOf(uint32_t part) const { return part == kDownPart ? in_.cols : experts_.n_ff; }
  uint32_t colsOf(uint32_t part) const { return part == kDownPart ? experts_.n_ff : in_.cols; }

  Op product(uint32_t part, const StackSlice& slice) const {
    const bool down = part == kDownPart;
    const Rows& in = down ? gated_ : in_;
    const Rows& out = down ? out_ : gate_up_;
    Op op = ops_.make(OpKind::kExpertMatmul,
                      {slice.place, act_.device_step, out.place, in.place, routes_});
    if (slots_.size_bytes != 0) {
      op.bindings[op.n_bindings++] = slots_;
    }
    op.weights = slice.type;
    ExpertMatmulPush& push = op.push.expert_matmul;
    push.rows = rowsOf(part);
    push.units = slice.geometry.units;
    push.group_words = slice.geometry.groupWords();
    push.side_word = slice.geometry.sideWord();
    push.in_stride = in.stride;
    push.out_stride = out.stride;
    push.out_first = part == kUpPart ? experts_.n_ff : 0;
    push.n_experts = experts_.count;
    push.n_used = experts_.used;
    push.routes = n_routes_;
    push.of_tokens = down ? 0 : 1;
    push.first = slice.first;
    push.count = slice.count;
    push.has_slots = slots_.size_bytes != 0 ? 1 : 0;
    return op;
  }

  Op activation() const {
    Op op = ops_.make(OpKind::kGatedActivation, {gate_up_.place, act_.device_step, gated_.place});
    op.push.gated_activation = {experts_.n_ff, gate_up_.stride, 0,
                                experts_.n_ff, gated_.stride,   kind_.gelu ? 1u : 0,
                                experts_.used};
    return op;
  }

  const uint32_t layer_;
  const LayerKind& kind_;
  const Experts& experts_;
  const ActivationLayout& act_;
  OpList& ops_;
  const Rows in_;
  const BufferRef slots_;
  const BufferRef routes_;
  const uint32_t n_routes_;
  Rows gate_up_;
  Rows gated_;
  Rows out_;
};

}  // namespace

Status emitExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                   const IoLayout& io, const Rows& in, const Rows& out, OpList* ops) {
  return ExpertOps(layer, kind, activations, io, in, ops).run(out);
}

}  // namespace oriel_internal
