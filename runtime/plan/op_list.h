// Makes single ops and appends them to the lists of a plan, and parts of the forward pass as ops: latent attention, experts,
// states, and draft models. The forward pass is written with these functions.
#pragma once

#include <initializer_list>

#include "model/adapters.h"
#include "plan/forward.h"
#include "plan/weight_placement.h"

namespace oriel_internal {

/// Rows of vectors in memory: [rows][stride] words. Only the first `cols` words of a row are used.
struct Rows {
  BufferRef place;
  uint32_t stride = 0;
  uint32_t cols = 0;
  uint32_t first = 0;  ///< column of a product's output for its first row
};

/// Matrices stacked by rows.
class MatrixParts {
 public:
  MatrixParts() = default;
  MatrixParts(std::initializer_list<MatrixPart> parts) {
    for (const MatrixPart& part : parts) {
      add(part);
    }
  }
  void add(const MatrixPart& part) { parts_[count_++] = part; }
  const MatrixPart* begin() const { return parts_; }
  const MatrixPart* end() const { return parts_ + count_; }
  uint32_t count() const { return count_; }

  static constexpr uint32_t kMost = 6;

 private:
  MatrixPart parts_[kMost] = {};
  uint32_t count_ = 0;
};

/// The effect of a product or a norm on its output: overwrite or add.
enum class Write : uint8_t { kOver, kAdd };

/// The activation of a layer's feed-forward, without the place of its rows.
inline GatedActivationPush activationPush(const ModelDesc& model, uint32_t layer) {
  const LayerKind& kind = model.kind(layer);
  GatedActivationPush push = {};
  push.activation = kind.activation;
  push.rows_per_token = 1;
  push.plain = kind.plain ? 1 : 0;
  push.scale = 1;
  const float(&of)[4] = model.layers[layer].activation;
  push.a = of[0];
  push.b = of[1];
  push.c = of[2];
  push.d = of[3];
  if (kind.activation == kClampedSilu) {
    push.a = 7;
    push.b = 1.702f;
  }
  return push;
}

class OpList {
 public:
  OpList(const TensorIndex& tensors, const ModelDesc& model, const Log& log,
         const ActivationLayout& activations, Plan* plan)
      : tensors_(tensors),
        model_(model),
        act_(activations),
        plan_(plan),
        weights_(tensors, log, plan) {}

  void toDecode(const Op& op);
  void toTail(const Op& op) { emitTo(StepList::kTail, op); }
  void toChunk(const Op& op) {
    if (guesses_ != Guesses::kOnly) {
      emitTo(StepList::kChunk, op);
    }
  }
  /// To kDecode and kChunk.
  void toBody(const Op& op);
  void toHead(const Op& op);
  void toHeadAlone(const Op& op) { emitTo(StepList::kHead, op); }
  void toBatchHead(const Op& op) {
    if (plan_->batch_rows > 1) {
      emitTo(StepList::kBatchHead, op);
    }
  }

  void toDraft(const Op& op) { emitTo(StepList::kDraft, op); }
  /// Sends the ops for one token of a body to the list kDraft: also, or only.
  enum class Guesses : uint8_t { kNo, kAlso, kOnly };
  void sendToDraft(Guesses guesses) { guesses_ = guesses; }

  /// The ops that follow are only for tokens whose logits are needed. They also go to the list kTail.
  void beginTail() { in_tail_ = true; }
  /// The ops that follow write no memory.
  void endFill() { plan_->fill_ops = plan_->n_ops[static_cast<uint32_t>(StepList::kChunk)]; }

  /// An op of this kind with these bindings. The step block is always the second binding.
  static Op make(OpKind kind, std::initializer_list<BufferRef> bindings);

  bool has(TensorRole role, uint32_t layer) const { return tensors_.has(role, layer); }

  /// A vector of weights.
  BufferRef vector(TensorRole role, uint32_t layer, uint32_t cols);
  BufferRef vectors(std::initializer_list<VectorPart> parts, uint32_t layer);

  /// A vector of `cols` ones. Calls with the same `cols` share it.
  BufferRef ones(uint32_t cols);

  /// out (+)= weight * in / rms(in), row by row, with the norm's `eps`.
  Op norm(TensorRole role, uint32_t layer, const Rows& in, const Rows& out, float eps, Write write);
  Op norm(const BufferRef& weight, const Rows& in, const Rows& out, float eps, Write write);
  /// The same with a bias, if the model has one.
  void biasedNorm(TensorRole role, TensorRole bias, uint32_t layer, const Rows& in, const Rows& out,
                  Write write = Write::kOver);
  /// A norm of the residual stream. Norms each group separately, and without weights if the model's norms have none.
  Op streamNorm(TensorRole role, uint32_t layer, const Rows& in, const Rows& out, float eps,
                Write write);

  /// An op with AddBiasPush: changes a product's output in place.
  Op change(uint32_t how, const BufferRef& values, const Rows& out) const;
  /// Adds the bias to columns first .. first + cols - 1, if the model has one.
  void addBias(TensorRole role, uint32_t layer, const Rows& out);

  /// out[.][first ...] (+)= the stacked matrices times in, each with its scale. `staged` is memory for another form of the
  /// input. Emits to the body. With kAdd there is one matrix, and its input has no other use: it is scaled in place.
  Status product(const MatrixParts& parts, const Rows& in, const Rows& out, const BufferRef& staged,
                 Write write);

  // Adapters (plan/adapt.cpp).

  /// out += gate * B (A in), for every part and adapter with such a pair. `head`: emits to the heads, for the rows of
  /// outputs.
  Status adapt(const MatrixParts& parts, const Rows& in, const Rows& out, const BufferRef& staged,
               bool head);
  /// The same for the embedding's rows.
  Status adaptEmbedding(const Rows& out);
  /// Adds the control vectors of a layer to its output.
  void steer(uint32_t layer, const Rows& out);
  /// Sets the gate of an op.
  template <typename Push>
  void gate(uint32_t adapter, float factor, Push* push) const {
    const RotationTables tables = rotationTables(model_);
    push->gate_first = static_cast<uint32_t>(
                           stepRotationWord(plan_->chunk_tokens, model_.n_views, tables.words, 0)) +
                       tables.gates + model_.adapters->gateOf(adapter, factor);
    push->gate_stride = tables.words;
  }
  /// The two matrices of an adapter's pair; false: it has none for this matrix.
  struct Pair {
    MatrixPart a, b;
    uint32_t rank = 0;
  };
  bool pairOf(uint32_t adapter, const MatrixPart& part, Pair* pair) const;

  Op matmul(const MatrixSlice& slice, const Rows& in, const Rows& out, const BufferRef& staged,
            Write write);

  /// Attention of `heads` heads. The result has `dim` values per head and goes to `out`. A chunk has enough work
  /// without splitting a head. With one token, heads are split and the parts merged. `push`: a member of op.push.
  template <typename Push>
  void attention(Op op, Push Op::Push::*push, uint32_t dim, const CacheShape& cache,
                 const Rows& out) {
    Push& of = op.push.*push;
    of.out_stride = out.stride;
    of.splits = 1;
    of.split_slots = cache.sinks + cache.window;
    toChunk(op);
    attentionOfOne(op, push, dim, cache, out, [this](const Op& part) { toDecode(part); });
  }
  /// Attention of one token: calls emit(const Op&) for its ops.
  template <typename Push, typename Emit>
  void attentionOfOne(Op op, Push Op::Push::*push, uint32_t dim, const CacheShape& cache,
                      const Rows& out, const Emit& emit) {
    Push& of = op.push.*push;
    of.out_stride = out.stride;
    of.splits = 1;
    of.split_slots = cache.sinks + cache.window;
    const AttentionSplit split = decodeSplit(cache);
    if (split.splits == 1) {
      emit(op);
      return;
    }
    op.bindings[kOpOut] = act_.partials;
    of.splits = split.splits;
    of.split_slots = split.split_slots;
    of.out_stride = of.n_heads * split.splits * (dim + kPartialExtra);
    emit(op);
    Op merge = make(OpKind::kAttentionMerge, {act_.partials, act_.device_step, out.place});
    merge.push.attention_merge = {of.n_heads,        dim,    out.stride, split.splits,
                                  split.split_slots, of.view};
    emit(merge);
  }

  /// Sets the rotation of queries and keys of a layer of this kind, and the slots of its memory.
  void rotation(const ModelDesc& model, const LayerKind& kind, const Memory& memory,
                const RotationTables& rotations, RopeAppendPush* push) const;

  /// Calls use(const StackSlice&) for the slices of all experts' matrices. A token uses only some of them.
  template <typename Use>
  Status experts(const MatrixPart& part, const Experts& experts, uint32_t rows, uint32_t cols,
                 const Use& use) {
    return weights_.stack(part, rows, cols, experts.count, [&](const StackSlice& slice) {
      read_bytes_ += slice.place.size_bytes / experts.count * experts.used;
      use(slice);
    });
  }
  /// Calls use(const StackSlice&) for the slices of the matrices of all heads.
  template <typename Use>
  Status heads(const HeadMatrices& matrices, const Use& use) {
    return weights_.heads(matrices, [&](const StackSlice& slice) {
      (void)counted(slice.place);
      use(slice);
    });
  }
  /// Takes `expert_slots` slots for these matrices. The experts stay in the file.
  Status expertSlots(const MatrixPart& part, const Experts& experts, uint32_t rows, uint32_t cols,
                     StackSlice* slice, ExpertsOnFile::Part* on_file) {
    ORIEL_TRY(weights_.slots(part, rows, cols, plan_->on_file.expert_slots, slice));
    const GgufTensor& tensor = tensors_.find(part.role, part.layer);
    *on_file = {tensor.offset, tensor.type, slice->type, rows, cols, slice->place};
    read_bytes_ += on_file->slotBytes() * experts.used;
    plan_->on_file_bytes += tensor.bytes;
    return kOk;
  }
  /// Appends to Plan::expert_layers.
  void expertsOnFile(const ExpertsOnFile& layer) {
    if (plan_->expert_layers != nullptr) {
      plan_->expert_layers[plan_->n_expert_layers] = layer;
    }
    ++plan_->n_expert_layers;
  }
  const Plan& plan() const { return *plan_; }
  const Adapters* adapters() const { return model_.adapters; }

  /// Calls use(const MatrixSlice&) for the slices of a matrix.
  template <typename Use>
  Status matrix(TensorRole role, uint32_t cols, const Use& use) {
    return matrices(MatrixParts({{role, 0}}), cols, use);
  }
  /// The same for matrices stacked by rows.
  template <typename Use>
  Status matrices(const MatrixParts& parts, uint32_t cols, const Use& use) {
    return weights_.matrix(parts, cols, use);
  }

  /// Records the table whose rows the host writes to `place`, and adds its bytes to on_file_bytes.
  void rowsOnFile(TensorRole role, uint32_t cols, const BufferRef& place) {
    const GgufTensor& tensor = tensors_.find(role, 0);
    plan_->file_rows = {tensor.offset,
                        tensor.type,
                        plan_->on_file.row_type,
                        cols,
                        static_cast<uint32_t>(tensor.dims[1]),
                        place};
    plan_->on_file_bytes += tensor.bytes;
    weights_.willRead(plan_->on_file.row_type);
  }

  /// Counts a row of a matrix that is only looked up.
  void countRead(uint64_t bytes) { read_bytes_ += bytes; }
  void countHead(uint64_t bytes) { head_bytes_ += bytes; }
  /// The weights of the draft model have `draft_bytes`. Tokens of the target read only `read_bytes`.
  void countDraft(uint64_t read_bytes, uint64_t draft_bytes) {
    draft_bytes_ = draft_bytes;
    read_bytes_ = read_bytes;
  }

  /// The ops that follow are the same layers again, with the same weights at the same places.
  void repeatWeights() { weights_.repeat(); }
  /// Marks the beginning of the layers that repeatWeights() repeats.
  void beginRepeated() { weights_.beginRepeated(); }
  void endRepeated() { weights_.endRepeated(); }

  Status finish() {
    // kOutputs runs the ops of kHead for more outputs.
    plan_->n_ops[static_cast<uint32_t>(StepList::kOutputs)] =
        plan_->n_ops[static_cast<uint32_t>(StepList::kHead)];
    return weights_.finish();
  }
  WeightCounts counts() const {
    return {weights_.bytes(), weights_.largestGroupBytes(), read_bytes_, head_bytes_,
            draft_bytes_,     weights_.adapterBytes()};
  }

 private:
  /// Multiplies columns first .. first + cols - 1 by the matrix's scale, if it has one.
  void addScale(TensorRole matrix, uint32_t layer, const Rows& out);
  Status adaptWith(uint32_t adapter, const MatrixParts& parts, const Rows& in, const Rows& out,
                   const BufferRef& staged, bool head);
  void gateThin(uint32_t adapter, float factor, uint32_t first, uint32_t cols, bool head);
  Status widen(const Pair& pair, uint32_t first, const Rows& out, bool head);
  void emitTo(StepList list, const Op& op);

  BufferRef counted(const BufferRef& place) {
    read_bytes_ += place.size_bytes;
    return place;
  }

  const TensorIndex& tensors_;
  const ModelDesc& model_;
  const ActivationLayout& act_;
  Plan* plan_;
  WeightPlacement weights_;
  bool in_tail_ = false;
  Guesses guesses_ = Guesses::kNo;
  BufferRef ones_;
  uint64_t read_bytes_ = 0;
  uint64_t head_bytes_ = 0;
  uint64_t draft_bytes_ = 0;
};

// Latent attention as ops: maps every head's query to the space of latents and the result back.

/// The buffers of a layer of latent attention, in addition to its input.
struct LatentPlaces {
  const ActivationLayout& activations;
  const RotationTables& rotations;
  Memory memory;
  BufferRef side;
};

/// Emits a layer's attention to `in`, up to activations.attended.
Status emitLatentAttention(uint32_t layer, const ModelDesc& model, const LatentPlaces& places,
                           const Rows& in, OpList* ops);

// Mixtures of experts as ops of a plan.

/// Input rows of a layer's experts.
struct ExpertRows {
  Rows routed;  ///< the router's input; zero columns: the scores are already computed
  Rows in;
  Rows out;
  Write write = Write::kAdd;
};

Status emitExperts(uint32_t layer, const ModelDesc& model, const ActivationLayout& activations,
                   const IoLayout& io, const ExpertRows& rows, OpList* ops);
/// Emits the experts' ops and writes the results to the columns of `out`.
Status emitValueExperts(uint32_t layer, const LayerKind& kind, const ActivationLayout& activations,
                        const IoLayout& io, const Rows& in, const Rows& out, OpList* ops);

// A layer's recurrent state as ops: its inputs, the state, and its outputs.

/// Emits the ops that add the output of the layer's state in `memory` to `out`, for the rows `in`.
Status emitState(uint32_t layer, const LayerKind& kind, const BufferRef& memory,
                 const ActivationLayout& activations, const Rows& in, const Rows& out,
                 const ModelDesc& model, OpList* ops);

// The layers of a draft model (ModelDesc::draft) as ops.

/// The place of a memory of the target model.
struct DraftMemory {
  Memory memory;
  BufferRef sides[2];
};

/// Emits the list kDraft. The caller first emits the ops that write the token's embedding to the first half of
/// ActivationLayout::draft_in. `memories`: one per layer of the draft model.
Status emitDraft(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                 const RotationTables& rotations, const DraftMemory* memories, OpList* ops);
/// Emits the choice of the best tokens of a guess's logits, the end of kDraft.
void emitBestGuess(const ModelDesc& model, const ActivationLayout& act, const BufferRef& top,
                   OpList* ops);

}  // namespace oriel_internal
