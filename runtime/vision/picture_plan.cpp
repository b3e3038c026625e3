#include "vision/picture_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "exec/load_weights.h"
#include "plan/codebooks.h"
#include "plan/memory_layout.h"
#include "plan/op_list.h"
#include "plan/weight_placement.h"
#include "vision/patches.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kStripPatches = 256;
constexpr uint32_t kMostOps = 48;  // of a list
/// Half of the memory for transfers: enough for the patches of a strip, and for a kernel's form of a strip's vectors.
constexpr uint64_t kTransferBytes = 1 << 20;
constexpr uint64_t kReadBytes = 256 << 10;
/// LayerNorm of kLfm2's projector.
constexpr float kInputNormEps = 1e-5f;

/// Rows of vectors in memory.
struct Vectors {
  BufferRef place;
  uint32_t stride = 0;
  uint32_t first = 0;  ///< column
};

/// A matrix in the file, and the rows of it.
struct MatrixOf {
  const char* name;  ///< %u is the block
  uint32_t rows;
  uint32_t cols;
  uint32_t first_row = 0;
  uint32_t head_dim = 0;  ///< rows as turnedRow()
};

// Order of PicturePlan::limits.
enum Limited : uint32_t { kOfQuery, kOfKey, kOfValue, kOfOut, kOfGate, kOfUp, kOfDown };
constexpr const char* kLimitedNames[kLimitedMatrices] = {
    "attn_q", "attn_k", "attn_v", "attn_out", "ffn_gate", "ffn_up", "ffn_down"};

class Builder {
 public:
  Builder(const GgufFile& file, const VisionDesc& desc, const Log& log, Arena* arena,
          PicturePlan* out)
      : file_(file), desc_(desc), log_(log), arena_(*arena), out_(*out), plan_(out->plan) {}

  Status build() {
    ORIEL_TRY(layOut());
    takeTables();
    ORIEL_TRY(readLimits());
    takeActivations();
    begin(WeightSet::kPatches, StepList::kDecode);
    ORIEL_TRY(patches());
    begin(WeightSet::kBlock, StepList::kChunk);
    ORIEL_TRY(keys());
    list_ = StepList::kDraft;
    ORIEL_TRY(rest());
    if (desc_.n_deepstack != 0) {
      begin(WeightSet::kDeepstack, StepList::kOutputs);
      ORIEL_TRY(deepstack());
    }
    if (is(Projector::kGemma4)) {
      list_ = StepList::kOutputs;
      meanOfCells();
    }
    begin(WeightSet::kProjector, StepList::kTail);
    ORIEL_TRY(is(Projector::kGemma4) ? projectMeans() : projectCells());
    return finish();
  }

 private:
  bool is(Projector projector) const { return desc_.projector == projector; }
  bool rms() const { return is(Projector::kGemma4); }

  Status layOut() {
    const uint32_t cell = desc_.merge * desc_.merge;
    const uint32_t strip = std::min(kStripPatches, out_.most_patches) / cell * cell;
    plan_.chunk_tokens = std::max(strip, 2 * cell);  // kCellsRun takes two
    cells_ = plan_.chunk_tokens / cell;
    plan_.all_rows = true;
    plan_.output_rows = cells_;
    plan_.n_views = 1;
    head_dim_ = desc_.headDim();
    out_.rotation_words = turns(desc_) ? head_dim_ : 0;
    if (head_dim_ > kMaxHeadDim) {
      return tooLarge("heads", head_dim_);
    }
    if (4ull * out_.most_patches * desc_.n_embd > kMaxBindingBytes) {
      return log_.fail(ORIEL_ERROR_ARGUMENT,
                       "a picture of %u patches has more values than a device takes at a time: "
                       "give fewer image tokens",
                       out_.most_patches);
    }
    return kOk;
  }

  Status tooLarge(const char* what, uint32_t size) const {
    return log_.fail(ORIEL_ERROR_UNSUPPORTED, "the encoder's %s of %u values are too large", what,
                     size);
  }

  void takeTables() {
    const uint32_t instances[kWeightSets] = {1, desc_.n_blocks, desc_.n_deepstack, 1};
    for (uint32_t s = 0; s < kWeightSets; ++s) {
      PictureWeights& set = out_.sets[s];
      const bool is_block = s == static_cast<uint32_t>(WeightSet::kBlock);
      set.instances = instances[s];
      set.places = arena_.take<PicturePlace>(uint64_t{set.instances} * set.kMostTensors);
      const uint64_t uploads = is_block ? 8ull * desc_.n_heads + 8 : 4;
      set.uploads = arena_.take<Upload>(uploads);
      set.tensor_of = arena_.take<uint8_t>(uploads);
      set.vectors = arena_.take<PictureVector>(set.kMostVectors);
    }
    for (const StepList list : {StepList::kDecode, StepList::kChunk, StepList::kOutputs,
                                StepList::kDraft, StepList::kTail}) {
      plan_.ops[static_cast<uint32_t>(list)] = arena_.take<Op>(kMostOps);
    }
    plan_.op_capacity = 5 * kMostOps;
    plan_.weight_segment_bytes = arena_.take<uint64_t>(1);
    if (rms()) {
      out_.limits = arena_.take<PictureLimits>(uint64_t{desc_.n_blocks} * kLimitedMatrices * 2);
    }
  }

  // readVisionDesc() has checked them.
  Status readLimits() {
    for (uint32_t i = 0; rms() && i < desc_.n_blocks * kLimitedMatrices * 2; ++i) {
      const uint32_t block = i / (2 * kLimitedMatrices);
      const uint32_t matrix = i / 2 % kLimitedMatrices;
      const char* const side = i % 2 == 0 ? "input" : "output";
      PictureLimits limits;
      ORIEL_TRY(readLimit(block, kLimitedNames[matrix], side, "min", &limits.least));
      ORIEL_TRY(readLimit(block, kLimitedNames[matrix], side, "max", &limits.most));
      if (limits.least != -HUGE_VALF || limits.most != HUGE_VALF) {
        limited_ |= 1u << (i % (2 * kLimitedMatrices));
      }
      if (out_.limits != nullptr) {
        out_.limits[i] = limits;
      }
    }
    return kOk;
  }

  Status readLimit(uint32_t block, const char* matrix, const char* side, const char* end,
                   float* value) {
    char name[64];
    std::snprintf(name, sizeof(name), "v.blk.%u.%s.%s_%s", block, matrix, side, end);
    GgufTensor tensor;
    if (!file_.findTensor(name, &tensor)) {
      return kOk;
    }
    const uint8_t* data = nullptr;
    float room = 0;
    ORIEL_TRY(file_.read(tensor.offset, sizeof(room), &room, log_, &data));
    std::memcpy(value, data, sizeof(*value));
    return kOk;
  }

  void takeActivations() {
    const uint32_t rows = plan_.chunk_tokens;
    const uint32_t n = desc_.n_embd;
    const uint64_t step = stepBytes(rows, 1, out_.rotation_words);
    PieceCounter io(ArenaKind::kIo, 0);
    plan_.step = io.take(step);
    plan_.step_decode_bytes = step;
    out_.patch_stride = paddedCols(desc_.patchValues());
    out_.text_stride = paddedCols(desc_.n_text);
    half_ = std::max<uint64_t>({kTransferBytes, 4ull * out_.patch_stride, 4ull * out_.text_stride,
                                4ull * paddedCols(n), 4ull * paddedCols(cellCols())});
    io_ = io;

    PieceCounter kept(ArenaKind::kActivations, 0);
    plan_.device_step = kept.take(step);
    out_.x = kept.take(4ull * out_.most_patches * n);
    out_.strip = kept.take(4ull * rows * n);
    x_ = {out_.strip, n};
    const auto take = [](PieceCounter* pieces, uint32_t count, uint32_t cols) {
      const uint32_t stride = paddedCols(cols);
      return Vectors{pieces->take(4ull * count * stride), stride};
    };
    normed_ = take(&kept, rows, n);
    means_ = take(&kept, rms() ? cells_ : 0, n);
    PieceCounter first(ArenaKind::kActivations, kept.used());
    out_.patches = take(&first, rows, desc_.patchValues()).place;
    PieceCounter attention(ArenaKind::kActivations, kept.used());
    qkv_ = take(&attention, rows, 2 * n);
    queries_ = {attention.take(8ull * rows * n), 2 * n};
    attended_ = take(&attention, rows, n);
    PieceCounter feed_forward(ArenaKind::kActivations, kept.used());
    gate_up_ = take(&feed_forward, rows, (rms() ? 2 : 1) * paddedCols(desc_.n_ff));
    PieceCounter projector(ArenaKind::kActivations, kept.used());
    cell_ = take(&projector, rms() ? 0 : cells_, cellCols());
    hidden_ = take(&projector, cells_, std::max(desc_.n_hidden, cellCols() * deep()));
    out_.out = take(&projector, cells_, desc_.n_text).place;
    plan_.activation_bytes =
        alignUp(std::max({first.used(), attention.used(), feed_forward.used(), projector.used()}),
                kArenaGranularity);

    CacheShape shape;
    shape.n_kv_heads = desc_.n_heads;
    shape.head_dim = head_dim_;
    shape.ring = shape.window = ring();
    const uint64_t side = sideLayout(KvFormat::kF16, shape).bytes;
    PieceCounter cache(ArenaKind::kCache, 0);
    k_ = cache.take(side);
    v_ = cache.take(side);
    plan_.cache = shape;
    plan_.cache_bytes = alignUp(cache.used(), kArenaGranularity);

    PieceCounter weights(ArenaKind::kWeights, 0);
    out_.ones_count = paddedCols(std::max(n, head_dim_));
    out_.ones = weights.take(4ull * out_.ones_count);
    sets_begin_ = sets_end_ = weights.used();
    largest_group_ = 4ull * out_.ones_count;
  }

  uint32_t cellCols() const { return desc_.n_embd * desc_.merge * desc_.merge; }
  uint32_t deep() const { return desc_.n_deepstack != 0 ? 1 : 0; }
  uint32_t ring() const { return out_.most_patches + out_.most_patches % 2; }

  // --- Weights ------------------------------------------------------------------------------------

  void begin(WeightSet set, StepList list) {
    kind_ = set;
    set_ = &out_.set(set);
    list_ = list;
    weights_ = PieceCounter(ArenaKind::kWeights, sets_begin_);
  }

  BufferRef take(uint64_t bytes) {
    const BufferRef piece = weights_.take(bytes);
    sets_end_ = std::max(sets_end_, weights_.used());
    return piece;
  }

  uint32_t blockOf(uint32_t instance) const {
    return kind_ == WeightSet::kDeepstack ? desc_.deepstack[instance] : instance;
  }

  /// Adds the tensor of each block to the set. *tensor: of the first that has it.
  Status find(const char* format, bool is_matrix, uint32_t* index, GgufTensor* tensor) {
    *index = set_->n_tensors++;
    tensor->bytes = 0;
    for (uint32_t i = 0; i < set_->instances; ++i) {
      char name[64];
      std::snprintf(name, sizeof(name), format, blockOf(i));  // NOLINT: names of this file
      GgufTensor found;
      const bool exists = file_.findTensor(name, &found);
      WeightType type = WeightType::kQ8_0;
      const bool runs =
          !exists || (weightTypeOf(found.type, &type) && (is_matrix || type <= WeightType::kBf16));
      uint32_t at = 0;
      uint32_t bytes = 0;
      if (!runs || codebookOf(type, &at, &bytes)) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                         "the tensor %s is of type %s, which this build does not run in an "
                         "encoder: use a file of another type",
                         name, tensorTypeName(found.type));
      }
      if (is_matrix && tensor->bytes != 0 && tensor->type != found.type) {
        return log_.fail(ORIEL_ERROR_UNSUPPORTED,
                         "the tensor %s is of type %s, and in block %u of %s: this build runs "
                         "encoders whose blocks have the same types",
                         name, tensorTypeName(found.type), blockOf(0),
                         tensorTypeName(tensor->type));
      }
      if (exists && tensor->bytes == 0) {
        *tensor = found;
      }
      if (set_->places != nullptr) {
        set_->places[i * set_->kMostTensors + *index] = {found.offset, found.type, exists};
      }
    }
    return kOk;
  }

  Status place(const MatrixOf& of, BufferRef* place, WeightType* type) {
    GgufTensor tensor;
    uint32_t index = 0;
    ORIEL_TRY(find(of.name, true, &index, &tensor));
    (void)weightTypeOf(tensor.type, type);
    const WeightGeometry geometry = weightGeometry(*type, of.cols);
    if (geometry.sliceBytes(of.rows) > kMaxBindingBytes) {
      return tooLarge("matrices with rows", of.cols);
    }
    *place = take(geometry.sliceBytes(of.rows));
    largest_group_ = std::max(largest_group_, geometry.groupBytes());
    out_.read_bytes = std::max(out_.read_bytes, fileRowBytes(tensor.type, of.cols));
    Upload item;
    item.tensor_type = tensor.type;
    item.cols = of.cols;
    item.type = *type;
    item.slice = *place;
    const uint32_t step = of.head_dim != 0 ? of.head_dim / 4 : of.rows;
    for (uint32_t row = 0; row < of.rows; row += step) {
      item.slice_row = row;
      item.rows = step;
      item.source_row =
          of.first_row + (of.head_dim != 0 ? row / of.head_dim * of.head_dim +
                                                 turnedRow(row % of.head_dim, of.head_dim)
                                           : row);
      if (set_->uploads != nullptr) {
        set_->uploads[set_->n_uploads] = item;
        set_->tensor_of[set_->n_uploads] = static_cast<uint8_t>(index);
      }
      ++set_->n_uploads;
    }
    return kOk;
  }

  BufferRef place(PictureVector vector) {
    vector.place = take(vectorBytes(vector.cols * vector.repeat));
    largest_group_ = std::max<uint64_t>(largest_group_, vector.place.size_bytes);
    out_.read_bytes = std::max<uint64_t>(out_.read_bytes, 8ull * paddedCols(vector.cols));
    if (set_->vectors != nullptr) {
      set_->vectors[set_->n_vectors] = vector;
    }
    ++set_->n_vectors;
    return vector.place;
  }

  Status vector(const char* name, PictureVector vector, BufferRef* out) {
    GgufTensor tensor;
    ORIEL_TRY(find(name, false, &vector.tensor, &tensor));
    *out = place(vector);
    return kOk;
  }
  Status vector(const char* name, uint32_t cols, BufferRef* out, uint32_t repeat = 1) {
    PictureVector of;
    of.cols = cols;
    of.repeat = repeat;
    return vector(name, of, out);
  }

  // --- Ops ----------------------------------------------------------------------------------------

  void emit(const Op& op) {
    const uint32_t i = static_cast<uint32_t>(list_);
    if (plan_.ops[i] != nullptr) {
      plan_.ops[i][plan_.n_ops[i]] = op;
    }
    ++plan_.n_ops[i];
  }

  /// out (+)= norm(in), `count` vectors of a row, each `cols` long.
  Op normOp(const BufferRef& weight, const Vectors& in, const Vectors& out, uint32_t cols,
            uint32_t count, bool add) const {
    Op op = OpList::make(OpKind::kRmsNorm, {in.place, plan_.device_step, out.place, weight});
    RmsNormPush& push = op.push.rms_norm;
    push.cols = cols;
    push.in_stride = in.stride;
    push.out_stride = out.stride;
    push.eps = desc_.eps;
    push.rows = count;
    push.first = in.first;
    push.out_first = out.first;
    push.accumulate = add ? 1 : 0;
    push.scale = 1;
    push.centred = rms() ? 0 : 1;
    return op;
  }

  void change(uint32_t how, const BufferRef& values, const Vectors& out, uint32_t cols) {
    Op op = OpList::make(OpKind::kAddBias, {values, plan_.device_step, out.place});
    op.push.add_bias = {cols, out.stride, out.first, 0, how, 0};
    emit(op);
  }

  Status bias(const char* name, const Vectors& out, uint32_t cols, uint32_t first = 0) {
    PictureVector of;
    of.cols = cols;
    of.first = first;
    BufferRef values;
    ORIEL_TRY(vector(name, of, &values));
    change(kChangeAdd, values, out, cols);
    return kOk;
  }

  /// out = norm(in), with a bias in a layer norm. `count` vectors share the weights.
  Status norm(const char* weight, const char* bias_name, const Vectors& in, const Vectors& out,
              uint32_t cols, uint32_t count = 1) {
    BufferRef values;
    ORIEL_TRY(vector(weight, cols, &values));
    emit(normOp(values, in, out, cols, count, false));
    if (!rms()) {
      ORIEL_TRY(vector(bias_name, cols, &values, count));
      change(kChangeAdd, values, out, cols * count);
    }
    return kOk;
  }

  Status product(const MatrixOf& of, const Vectors& in, const Vectors& out, bool add) {
    BufferRef matrix;
    WeightType type = WeightType::kF32;
    ORIEL_TRY(place(of, &matrix, &type));
    Op op = OpList::make(OpKind::kMatmul, {matrix, plan_.device_step, out.place, in.place});
    op.weights = type;
    const WeightGeometry geometry = weightGeometry(type, of.cols);
    MatmulPush& push = op.push.matmul;
    push.rows = of.rows;
    geometry.describe(&push);
    push.in_stride = in.stride;
    push.out_stride = out.stride;
    push.out_first = out.first;
    push.accumulate = add ? 1 : 0;
    emit(op);
    return kOk;
  }

  bool limits(Limited matrix, bool of_output) const {
    return (limited_ >> (2 * matrix + (of_output ? 1 : 0)) & 1) != 0;
  }
  void limit(Limited matrix, bool of_output, const Vectors& rows, uint32_t cols) {
    if (limits(matrix, of_output)) {
      PictureVector of;
      of.from = PictureVector::From::kLimits;
      of.tensor = 2 * matrix + (of_output ? 1 : 0);
      of.cols = 2;
      change(kChangeBetween, place(of), rows, cols);
    }
  }

  /// The input of a block's branch: a norm of the strip. Computed again for each product if a product limits its input.
  Status branchInput(uint32_t branch) {
    return branch == 1
               ? norm("v.blk.%u.ln1.weight", "v.blk.%u.ln1.bias", x_, normed_, desc_.n_embd)
               : norm("v.blk.%u.ln2.weight", "v.blk.%u.ln2.bias", x_, normed_, desc_.n_embd);
  }

  // --- Phases -------------------------------------------------------------------------------------

  Status patches() {
    const Vectors in = {out_.patches, out_.patch_stride};
    const uint32_t cols = desc_.patchValues();
    ORIEL_TRY(product({"v.patch_embd.weight", desc_.n_embd, cols}, in, x_, true));
    if (is(Projector::kQwen3)) {  // both frames of a still picture are the same
      ORIEL_TRY(product({"v.patch_embd.weight.1", desc_.n_embd, cols}, in, x_, true));
    }
    return rms() ? Status(kOk) : bias("v.patch_embd.bias", x_, desc_.n_embd);
  }

  struct Projection {
    Limited limited;
    const char* name;
    const char* bias;
    const char* norm;  ///< of heads; null: none
    uint32_t part;     ///< of the fused matrix
  };

  // Queries, keys or values: heads are columns from out.first on.
  Status projection(const Projection& of, const Vectors& out) {
    const uint32_t n = desc_.n_embd;
    const bool fused = is(Projector::kQwen3);
    const bool turned = rms() && of.limited != kOfValue;
    ORIEL_TRY(has_input_ ? Status(kOk) : branchInput(1));
    limit(of.limited, false, normed_, n);
    has_input_ = !limits(of.limited, false);
    ORIEL_TRY(product({fused ? "v.blk.%u.attn_qkv.weight" : of.name, n, n, fused ? of.part * n : 0,
                       turned ? head_dim_ : 0},
                      normed_, out, false));
    limit(of.limited, true, out, n);
    if (!rms()) {
      return bias(fused ? "v.blk.%u.attn_qkv.bias" : of.bias, out, n, fused ? of.part * n : 0);
    }
    BufferRef weight = out_.ones;
    if (of.norm != nullptr) {
      PictureVector values;
      values.cols = values.head_dim = head_dim_;
      ORIEL_TRY(vector(of.norm, values, &weight));
    }
    emit(normOp(weight, out, out, head_dim_, desc_.n_heads, false));
    return kOk;
  }

  Op ropeAppend(uint32_t queries, uint32_t keys) const {
    Op op =
        OpList::make(OpKind::kRopeAppend, {qkv_.place, plan_.device_step, queries_.place, k_, v_});
    RopeAppendPush& push = op.push.rope_append;
    push.n_heads = queries;
    push.n_kv_heads = keys;
    push.head_dim = head_dim_;
    push.rope_dims = out_.rotation_words;
    push.pair_stride = out_.rotation_words != 0 ? head_dim_ / 2 : 1;
    push.qkv_stride = qkv_.stride;
    push.query_stride = queries_.stride;
    push.rotation_stride = out_.rotation_words;
    push.key_rotation = push.query_rotation = push.sink_rotation =
        static_cast<uint32_t>(stepRotationWord(plan_.chunk_tokens, 1, out_.rotation_words, 0));
    return op;
  }

  Status keys() {
    has_input_ = false;
    const Vectors values = {qkv_.place, qkv_.stride, desc_.n_embd};
    ORIEL_TRY(projection({kOfKey, "v.blk.%u.attn_k.weight", "v.blk.%u.attn_k.bias",
                          "v.blk.%u.attn_k_norm.weight", 1},
                         qkv_));
    ORIEL_TRY(projection({kOfValue, "v.blk.%u.attn_v.weight", "v.blk.%u.attn_v.bias", nullptr, 2},
                         values));
    emit(ropeAppend(0, desc_.n_heads));
    return kOk;
  }

  Status rest() {
    has_input_ = false;
    ORIEL_TRY(projection({kOfQuery, "v.blk.%u.attn_q.weight", "v.blk.%u.attn_q.bias",
                          "v.blk.%u.attn_q_norm.weight", 0},
                         qkv_));
    emit(ropeAppend(desc_.n_heads, 0));
    Op attention = OpList::make(OpKind::kAttention,
                                {queries_.place, plan_.device_step, attended_.place, k_, v_});
    AttentionPush& push = attention.push.attention;
    push.n_heads = push.n_kv_heads = desc_.n_heads;
    push.head_dim = head_dim_;
    push.query_stride = queries_.stride;
    push.out_stride = attended_.stride;
    push.ring = push.split_slots = ring();
    push.splits = 1;
    push.scale = rms() ? 1.0f : 1.0f / std::sqrt(static_cast<float>(head_dim_));
    emit(attention);
    const uint32_t n = desc_.n_embd;
    ORIEL_TRY(addBranch(kOfOut, {"v.blk.%u.attn_out.weight", n, n}, "v.blk.%u.attn_out.bias",
                        "v.blk.%u.attn_post_norm.weight", attended_, nullptr));
    return feedForward();
  }

  /// x += the matrix times in, or the norm of that. `scale`: the name of a factor of x; null: none.
  Status addBranch(Limited limited, const MatrixOf& of, const char* bias_name,
                   const char* norm_name, const Vectors& in, const char* scale) {
    const uint32_t n = desc_.n_embd;
    limit(limited, false, in, of.cols);
    if (!rms()) {
      ORIEL_TRY(product(of, in, x_, true));
      return bias(bias_name, x_, n);
    }
    ORIEL_TRY(product(of, in, normed_, false));
    limit(limited, true, normed_, n);
    BufferRef weight;
    ORIEL_TRY(vector(norm_name, n, &weight));
    Op op = normOp(weight, normed_, x_, n, 1, true);
    if (scale != nullptr) {
      PictureVector factor;
      factor.from = PictureVector::From::kScale;
      factor.cols = 1;
      ORIEL_TRY(vector(scale, factor, &op.bindings[op.n_bindings]));
      ++op.n_bindings;
      op.push.rms_norm.has_factor = 1;
    }
    emit(op);
    return kOk;
  }

  Status feedForward() {
    const uint32_t n = desc_.n_embd;
    const uint32_t ff = desc_.n_ff;
    const bool swapped = desc_.swapped_ff;
    const Vectors up = {gate_up_.place, gate_up_.stride, rms() ? paddedCols(ff) : 0};
    ORIEL_TRY(branchInput(2));
    if (rms()) {
      limit(kOfGate, false, normed_, n);
      ORIEL_TRY(product({"v.blk.%u.ffn_gate.weight", ff, n}, normed_, gate_up_, false));
      limit(kOfGate, true, gate_up_, ff);
      ORIEL_TRY(limits(kOfGate, false) ? branchInput(2) : kOk);
    }
    limit(kOfUp, false, normed_, n);
    ORIEL_TRY(product({swapped ? "v.blk.%u.ffn_down.weight" : "v.blk.%u.ffn_up.weight", ff, n},
                      normed_, up, false));
    limit(kOfUp, true, up, ff);
    if (!rms()) {
      ORIEL_TRY(bias(swapped ? "v.blk.%u.ffn_down.bias" : "v.blk.%u.ffn_up.bias", up, ff));
    }
    activation(kGelu, gate_up_, ff, up.first);
    return addBranch(kOfDown,
                     {swapped ? "v.blk.%u.ffn_up.weight" : "v.blk.%u.ffn_down.weight", n, ff},
                     swapped ? "v.blk.%u.ffn_up.bias" : "v.blk.%u.ffn_down.bias",
                     "v.blk.%u.ffn_post_norm.weight", gate_up_,
                     has("out_scale.weight") ? "v.blk.%u.out_scale.weight" : nullptr);
  }

  bool has(const char* part) const {
    bool any = false;
    for (uint32_t block = 0; block < desc_.n_blocks; ++block) {
      char name[64];
      std::snprintf(name, sizeof(name), "v.blk.%u.%s", block, part);
      GgufTensor tensor;
      any = any || file_.findTensor(name, &tensor);
    }
    return any;
  }

  /// In place. `up`: column of the second factor; 0: none.
  void activation(uint32_t kind, const Vectors& rows, uint32_t cols, uint32_t up) {
    Op op = OpList::make(OpKind::kGatedActivation, {rows.place, plan_.device_step, rows.place});
    GatedActivationPush push = {};
    push.cols = cols;
    push.in_stride = push.out_stride = rows.stride;
    push.up_offset = up;
    push.activation = kind;
    push.rows_per_token = 1;
    push.plain = up == 0 ? 1 : 0;
    push.scale = 1;
    op.push.gated_activation = push;
    emit(op);
  }

  void meanOfCells() {
    Op op = OpList::make(OpKind::kPool, {out_.strip, plan_.device_step, means_.place});
    op.push.pool = {desc_.n_embd, x_.stride, means_.stride};
    emit(op);
  }

  // The standardisation includes the publisher's factor sqrt(n). Without it the factor only changes the norm's epsilon.
  Status projectMeans() {
    const uint32_t n = desc_.n_embd;
    const float root = std::sqrt(static_cast<float>(n));
    if (desc_.standardised) {
      PictureVector values;
      values.cols = n;
      values.factor = -1 / root;
      BufferRef place;
      ORIEL_TRY(vector("v.std_bias", values, &place));
      change(kChangeAdd, place, means_, n);
      values.factor = root;
      ORIEL_TRY(vector("v.std_scale", values, &place));
      change(kChangeTimesEach, place, means_, n);
    }
    Op op = normOp(out_.ones, means_, normed_, n, 1, false);
    op.push.rms_norm.eps = desc_.standardised ? desc_.eps : desc_.eps / static_cast<float>(n);
    emit(op);
    return product({"mm.input_projection.weight", desc_.n_text, n}, normed_,
                   {out_.out, out_.text_stride}, false);
  }

  Status projectCells() {
    const uint32_t cols = cellCols();
    const Vectors strip = {out_.strip, cols};
    const Vectors out = {out_.out, out_.text_stride};
    ORIEL_TRY(norm("v.post_ln.weight", "v.post_ln.bias", strip, cell_, desc_.n_embd,
                   desc_.merge * desc_.merge));
    if (is(Projector::kIdefics3)) {
      return product({"mm.model.fc.weight", desc_.n_text, cols}, cell_, out, false);
    }
    if (desc_.input_norm) {
      BufferRef values;
      ORIEL_TRY(vector("mm.input_norm.weight", cols, &values));
      Op op = normOp(values, cell_, cell_, cols, 1, false);
      op.push.rms_norm.eps = kInputNormEps;
      emit(op);
      ORIEL_TRY(bias("mm.input_norm.bias", cell_, cols));
    }
    const bool qwen = is(Projector::kQwen3);
    return mlp({qwen ? "mm.0.weight" : "mm.1.weight", desc_.n_hidden, cols},
               qwen ? "mm.0.bias" : "mm.1.bias", {"mm.2.weight", desc_.n_text, desc_.n_hidden},
               "mm.2.bias");
  }

  Status deepstack() {
    const uint32_t cols = cellCols();
    ORIEL_TRY(norm("v.deepstack.%u.norm.weight", "v.deepstack.%u.norm.bias", {out_.strip, cols},
                   cell_, cols));
    return mlp({"v.deepstack.%u.fc1.weight", cols, cols}, "v.deepstack.%u.fc1.bias",
               {"v.deepstack.%u.fc2.weight", desc_.n_text, cols}, "v.deepstack.%u.fc2.bias");
  }

  // Two matrices with the exact GELU between them, as the publishers run them.
  Status mlp(const MatrixOf& first, const char* first_bias, const MatrixOf& second,
             const char* second_bias) {
    const Vectors out = {out_.out, out_.text_stride};
    ORIEL_TRY(product(first, cell_, hidden_, false));
    ORIEL_TRY(bias(first_bias, hidden_, first.rows));
    activation(kGeluErf, hidden_, first.rows, 0);
    ORIEL_TRY(product(second, hidden_, out, false));
    return bias(second_bias, out, second.rows);
  }

  Status finish() {
    for (uint32_t list = 0; list < kStepLists; ++list) {
      if (plan_.n_ops[list] > kMostOps) {
        return log_.fail(ORIEL_ERROR_INTERNAL, "an encoder of more than %u ops: please report it",
                         kMostOps);
      }
    }
    half_ = alignUp(std::max(half_, largest_group_), kBufferAlignment);
    out_.upload_half = static_cast<uint32_t>(half_);
    plan_.upload = io_.take(2 * half_);
    plan_.io_bytes = alignUp(io_.used(), kArenaGranularity);
    plan_.weights_bytes = alignUp(sets_end_, kArenaGranularity);
    plan_.weight_segments = 1;
    if (plan_.weight_segment_bytes != nullptr) {
      plan_.weight_segment_bytes[0] = plan_.weights_bytes;
    }
    plan_.fill_ops = plan_.n_ops[static_cast<uint32_t>(StepList::kChunk)];
    out_.read_bytes = std::max<uint64_t>(out_.read_bytes, kReadBytes);
    return plan_.weights_bytes <= kMaxAllocationBytes ? Status(kOk)
                                                      : tooLarge("blocks of", desc_.n_embd);
  }

  const GgufFile& file_;
  const VisionDesc& desc_;
  const Log& log_;
  Arena& arena_;
  PicturePlan& out_;
  Plan& plan_;
  WeightSet kind_ = WeightSet::kPatches;
  PictureWeights* set_ = nullptr;
  StepList list_ = StepList::kDecode;
  PieceCounter weights_{ArenaKind::kWeights, 0};
  PieceCounter io_{ArenaKind::kIo, 0};
  uint64_t sets_begin_ = 0;
  uint64_t sets_end_ = 0;
  uint64_t largest_group_ = 0;
  uint64_t half_ = 0;
  uint32_t limited_ = 0;  // a bit for each of a block's limits that some block has
  uint32_t head_dim_ = 0;
  uint32_t cells_ = 0;
  bool has_input_ = false;  // normed_ holds the unlimited input of attention
  Vectors x_, normed_, means_, qkv_, queries_, attended_, gate_up_, cell_, hidden_;
  BufferRef k_, v_;
};

}  // namespace

Status buildPicturePlan(const GgufFile& file, const VisionDesc& desc, uint32_t most_patches,
                        const Log& log, Arena* arena, PicturePlan* out) {
  *out = PicturePlan();
  out->most_patches = most_patches;
  return Builder(file, desc, log, arena, out).build();
}

}  // namespace oriel_internal
