#include "tools/shape_weights.h"

#include <algorithm>

#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

/// The use of a matrix in a step.
enum class Use : uint8_t {
  kBody,      ///< multiplied for every token
  kHead,      ///< multiplied only for logits
  kLookedUp,  ///< one row is read per token
  kInputs,    ///< the same for layers' own input embeddings, which may stay in the file
  kRouter,    ///< like kBody, in f32
};

/// Walks a shape's weights in the order of plan/forward.cpp. A visitor has vector(values), matrix(rows, cols, use),
/// stack(rows, cols, experts) for all experts' matrices, heads(rows, cols, n_heads, transposed) for all heads' matrices,
/// buffer(values) for vectors that are not parameters, and ones(values), whose memory all such vectors share.
template <typename Visitor>
class WeightWalk {
 public:
  WeightWalk(const ModelShape& shape, Visitor* visitor) : shape_(shape), visit_(*visitor) {}

  void run() {
    const bool tied = shape_.has(kTied);
    norm();
    visit_.matrix(shape_.n_vocab, shape_.n_embd, tied ? Use::kHead : Use::kLookedUp);
    if (shape_.has(kLearnedPositions)) {
      visit_.matrix(shape_.context_train, shape_.n_embd, Use::kLookedUp);
    }
    if (shape_.layers.layer_input != 0) {
      layerInputs();
    }
    for (uint32_t layer = 0; layer < shape_.n_layers; ++layer) {
      const bool owns = layer < shape_.n_layers - shape_.layers.shared_layers;
      const char sort = shape_.layers.sort(layer);
      preNorm();
      if (sort == 'c') {
        convolution();
      } else if (shape_.layers.latent_dim != 0) {
        latentAttention();
      } else if (sort != 'r') {
        attention(sort == 's', owns);
      }
      if (sort == 'r' || sort == 'b') {
        state();
      }
      postNorm();
      feedForward(layer, owns);
      if (shape_.layers.layer_input != 0) {
        layerInput();
      }
      if (shape_.has(kLayerScale)) {
        visit_.vector(1);
      }
    }
    if (!tied) {
      visit_.matrix(shape_.n_vocab, shape_.n_embd, Use::kHead);
    }
  }

 private:
  void norm() {
    visit_.vector(shape_.n_embd);
    if (shape_.has(kNormBias)) {
      visit_.vector(shape_.n_embd);
    }
  }
  void preNorm() {
    if (!shape_.has(kPostNorms)) {
      norm();
    }
  }
  void postNorm() {
    if (shape_.has(kPostNorms) || shape_.has(kFourNorms)) {
      norm();
    }
  }

  void layerInputs() {
    const uint32_t all = shape_.layers.layer_input * shape_.n_layers;
    visit_.matrix(all, shape_.n_embd, Use::kBody);
    visit_.vector(shape_.layers.layer_input);
    visit_.matrix(shape_.n_vocab, all, Use::kInputs);
  }

  void layerInput() {
    visit_.matrix(shape_.layers.layer_input, shape_.n_embd, Use::kBody);
    visit_.matrix(shape_.n_embd, shape_.layers.layer_input, Use::kBody);
    visit_.vector(shape_.n_embd);
  }

  void convolution() {
    visit_.matrix(3 * shape_.n_embd, shape_.n_embd, Use::kBody);
    visit_.vector(shape_.layers.conv_taps * shape_.n_embd);
    visit_.matrix(shape_.n_embd, shape_.n_embd, Use::kBody);
  }

  void state() {
    const StateShape& state = shape_.layers.state;
    const bool delta = state.rule == StateRule::kDelta;
    const uint32_t values = state.valueCols();
    visit_.matrix(state.channels() + values + (delta ? 2 : 1) * state.heads, shape_.n_embd,
                  Use::kBody);
    visit_.vector((delta ? 2 : 3) * state.heads);
    visit_.vector((state.conv_taps + (delta ? 0 : 1)) * state.channels());
    if (state.normed) {
      visit_.vector(delta ? state.value_dim : values);
    }
    visit_.matrix(shape_.n_embd, values, Use::kBody);
  }

  void attention(bool slides, bool owns) {
    const uint32_t own_dim = shape_.layers.sliding_head_dim;
    const uint32_t head_dim = slides && own_dim != 0 ? own_dim : shape_.head_dim;
    const uint32_t query = shape_.n_heads * head_dim;
    const uint32_t keys = shape_.n_kv_heads * head_dim;
    const uint32_t gates = shape_.has(kGatedAttention) ? query : 0;
    if (shape_.has(kHeadGates)) {
      visit_.matrix(shape_.n_heads, shape_.n_embd, Use::kBody);
    }
    visit_.matrix(gates + query + (owns ? 2 * keys : 0), shape_.n_embd, Use::kBody);
    if (shape_.has(kValueNorm) && owns) {
      visit_.ones(head_dim);
    }
    if (shape_.has(kQkvBias)) {
      visit_.vector(query);
      visit_.vector(keys);
      visit_.vector(keys);
    }
    if (shape_.has(kAllBiases)) {
      visit_.vector(query + 2 * keys);
    }
    if (shape_.has(kNormsAfterRope)) {
      visit_.ones(head_dim);  // for queries
      visit_.ones(head_dim);  // and for keys
      visit_.vector(2 * head_dim);
    } else if (shape_.has(kHeadNorms) || shape_.has(kRowNorms)) {
      visit_.vector(shape_.has(kRowNorms) ? query : head_dim);
      if (owns) {
        visit_.vector(shape_.has(kRowNorms) ? keys : head_dim);
      }
    }
    visit_.matrix(shape_.n_embd, query, Use::kBody);
  }

  void latentAttention() {
    const ShapeLayers& layers = shape_.layers;
    const uint32_t query = shape_.n_heads * shape_.head_dim;
    const uint32_t vector = layers.latent_dim + layers.rope_dim;
    if (layers.query_latent_dim == 0) {
      visit_.matrix(query, shape_.n_embd, Use::kBody);
      visit_.matrix(vector, shape_.n_embd, Use::kBody);
    } else {
      visit_.matrix(layers.query_latent_dim + vector, shape_.n_embd, Use::kBody);
      visit_.vector(layers.query_latent_dim);
      visit_.matrix(query, layers.query_latent_dim, Use::kBody);
    }
    visit_.vector(layers.latent_dim);
    visit_.heads(layers.latent_dim, shape_.head_dim - layers.rope_dim, shape_.n_heads,
                 layers.joined_latent);
    visit_.heads(layers.value_dim, layers.latent_dim, shape_.n_heads, false);
    visit_.matrix(shape_.n_embd, shape_.n_heads * layers.value_dim, Use::kBody);
  }

  void feedForward(uint32_t layer, bool owns) {
    const ShapeLayers& layers = shape_.layers;
    if (shape_.n_ff == 0) {
      return;  // Mamba-2 alone
    }
    preNorm();
    if (layers.experts.count == 0 || layer < layers.dense_layers) {
      gatedFeedForward(!owns && layers.shared_ff != 0 ? layers.shared_ff : shape_.n_ff);
      return;
    }
    if (layers.shared_expert_ff != 0) {
      gatedFeedForward(layers.shared_expert_ff, layers.experts.shared_gate);
    }
    visit_.matrix(layers.experts.count, shape_.n_embd, Use::kRouter);
    if (shape_.has(kRouterBias)) {
      visit_.buffer(layers.experts.count);
    }
    visit_.stack(layers.experts.n_ff, shape_.n_embd, layers.experts);
    visit_.stack(layers.experts.n_ff, shape_.n_embd, layers.experts);
    visit_.stack(shape_.n_embd, layers.experts.n_ff, layers.experts);
  }

  void gatedFeedForward(uint32_t n_ff, bool with_gate = false) {
    visit_.matrix((shape_.has(kPlainFeedForward) ? 1 : 2) * n_ff, shape_.n_embd, Use::kBody);
    if (with_gate) {
      visit_.matrix(1, shape_.n_embd, Use::kRouter);
    }
    visit_.matrix(shape_.n_embd, n_ff, Use::kBody);
    if (shape_.has(kAllBiases)) {  // also of attention's output
      visit_.vector(shape_.n_embd);
      visit_.vector(n_ff);
      visit_.vector(shape_.n_embd);
    }
    postNorm();
  }

  const ModelShape& shape_;
  Visitor& visit_;
};

template <typename Visitor>
void walkWeights(const ModelShape& shape, Visitor* visitor) {
  if (shape.weightsKnown()) {
    WeightWalk<Visitor>(shape, visitor).run();
  }
}

struct ParameterCounter {
  uint64_t count = 0;

  void matrix(uint32_t rows, uint32_t cols, Use) { count += uint64_t{rows} * cols; }
  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    count += uint64_t{rows} * cols * experts.count;
  }
  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool) {
    count += uint64_t{rows} * cols * n_heads;
  }
  void vector(uint32_t values) { count += values; }
  void buffer(uint32_t) {}
  void ones(uint32_t) {}
};

/// Slices and segments as in WeightPlacement, bytes read as in OpList.
struct WeightCounter {
  WeightType type = WeightType::kQ4_0;
  OnFile wanted;
  PlanTotals totals;
  WeightSegments segments;
  uint64_t largest_group_bytes = 0;
  uint64_t ones_bytes = 0;

  void place(uint64_t bytes, uint64_t group_bytes) {
    (void)segments.take(bytes);
    largest_group_bytes = std::max(largest_group_bytes, group_bytes);
  }

  void matrix(uint32_t rows, uint32_t cols, Use use) {
    const WeightGeometry geometry =
        weightGeometry(use == Use::kRouter ? WeightType::kF32 : type, cols);
    const bool looked_up = use == Use::kLookedUp || use == Use::kInputs;
    totals.weights_read_bytes_per_token += looked_up ? geometry.rowBytes() : 0;
    if (use == Use::kInputs && wanted.rows) {
      totals.on_file.rows = true;
      totals.on_file.row_type = type;
      totals.on_file_bytes += fileBytes(rows, cols);
      return;
    }
    const uint32_t slice_rows = maxSliceRows(geometry);
    for (uint32_t begin = 0; begin < rows; begin += slice_rows) {
      const uint64_t bytes = geometry.sliceBytes(std::min(slice_rows, rows - begin));
      place(bytes, geometry.groupBytes());
      totals.weights_read_bytes_per_token += looked_up ? 0 : bytes;
      totals.head_read_bytes += use == Use::kHead ? bytes : 0;
    }
  }

  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    const WeightGeometry geometry = weightGeometry(type, cols);
    const uint64_t expert_bytes = geometry.sliceBytes(rows);
    if (wanted.expert_slots != 0) {
      totals.on_file.expert_slots = wanted.expert_slots;
      totals.on_file_bytes += fileBytes(rows, cols) * experts.count;
      place(expert_bytes * wanted.expert_slots, geometry.groupBytes());
      totals.weights_read_bytes_per_token += expert_bytes * experts.used;
      return;
    }
    const auto most = static_cast<uint32_t>(kMaxBindingBytes / expert_bytes);
    for (uint32_t first = 0; first < experts.count; first += most) {
      const uint64_t bytes = expert_bytes * std::min(most, experts.count - first);
      place(bytes, geometry.groupBytes());
      totals.weights_read_bytes_per_token += bytes / experts.count * experts.used;
    }
  }

  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool transposed) {
    const WeightGeometry geometry = weightGeometry(transposed ? transposedType(type) : type, cols);
    const uint64_t head_bytes = geometry.sliceBytes(rows);
    const auto most = static_cast<uint32_t>(kMaxBindingBytes / head_bytes);
    for (uint32_t first = 0; first < n_heads; first += most) {
      const uint64_t bytes = head_bytes * std::min(most, n_heads - first);
      place(bytes, head_bytes);
      totals.weights_read_bytes_per_token += bytes;
    }
  }

  uint64_t fileBytes(uint32_t rows, uint32_t cols) const {
    return fileRowBytes(fileTypeOf(type), cols) * rows;
  }

  void vector(uint32_t values) {
    place(vectorBytes(values), vectorBytes(values));
    totals.weights_read_bytes_per_token += vectorBytes(values);
  }
  void buffer(uint32_t values) { vector(values); }
  void ones(uint32_t values) {
    if (ones_bytes < 4ull * values) {
      ones_bytes = vectorBytes(values);
      place(ones_bytes, ones_bytes);
    }
    totals.weights_read_bytes_per_token += ones_bytes;
  }
};

struct WorkCounter {
  WorkShape* work;
  uint32_t tensor_type;
  bool has_rows_on_file;

  void matrix(uint32_t rows, uint32_t cols, Use use) {
    const uint64_t weights = uint64_t{rows} * cols;
    switch (use) {
      case Use::kBody:
        return work->add(tensor_type, weights, 0);
      case Use::kHead:
        return work->add(tensor_type, 0, weights);
      case Use::kRouter:
        return work->add(static_cast<uint32_t>(TensorType::kF32), weights, 0);
      case Use::kInputs:
        work->row_file_bytes = has_rows_on_file ? fileRowBytes(tensor_type, cols) : 0;
        return;
      case Use::kLookedUp:
        return;
    }
  }
  void stack(uint32_t rows, uint32_t cols, const Experts& experts) {
    work->add(tensor_type, 0, 0, uint64_t{rows} * cols * experts.count);
    work->expert_file_bytes += work->expert_slots != 0 ? fileRowBytes(tensor_type, cols) * rows : 0;
  }
  void heads(uint32_t rows, uint32_t cols, uint32_t n_heads, bool transposed) {
    WeightType type = WeightType::kF16;
    (void)weightTypeOf(tensor_type, &type);
    work->add(transposed ? fileTypeOf(transposedType(type)) : tensor_type,
              uint64_t{rows} * cols * n_heads, 0);
  }
  void vector(uint32_t) {}
  void buffer(uint32_t) {}
  void ones(uint32_t) {}
};

}  // namespace

uint64_t shapeParameters(const ModelShape& shape) {
  ParameterCounter counter;
  walkWeights(shape, &counter);
  return counter.count;
}

PlanTotals measureShape(const ModelShape& shape, WeightType type, const OnFile& wanted) {
  WeightCounter counter;
  counter.type = type;
  counter.wanted = wanted;
  walkWeights(shape, &counter);
  counter.segments.close();
  PlanTotals& totals = counter.totals;
  totals.weights_bytes = counter.segments.bytes();
  totals.weight_segments = counter.segments.count();
  totals.upload_half_bytes = uploadHalfBytes(totals.weights_bytes, counter.largest_group_bytes);
  return totals;
}

WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type,
                 const OnFile& on_file) {
  // Kernels per layer: two norms, four matrices, rotation, attention and its merge, activation. Experts add the router,
  // its choice, their sorting, three matrices, activation and sum. A layer input adds three. Latents have a norm, two
  // matrices of heads and one more that makes them, and optionally another pair for queries. A state takes five, as
  // many as attention.
  const uint32_t ops_per_layer =
      10u + (shape.layers.experts.count != 0 ? 8 : 0) + (shape.layers.layer_input != 0 ? 3 : 0) +
      (shape.layers.latent_dim != 0 ? 4 : 0) + (shape.layers.query_latent_dim != 0 ? 1 : 0) +
      (shape.count("b") != 0 ? 5 : 0) - (shape.n_ff == 0 ? 4 : 0);
  WorkShape work;
  work.model = &model;
  work.n_ops[static_cast<uint32_t>(StepList::kDecode)] = 1 + ops_per_layer * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kChunk)] = 1 + (ops_per_layer - 1) * shape.n_layers;
  work.n_ops[static_cast<uint32_t>(StepList::kHead)] = 4;
  work.known = shape.weightsKnown();
  const ExpertLimits experts = expertLimits(model);
  work.expert_count = experts.count;
  work.expert_used = experts.used;
  work.expert_slots = experts.count != 0 ? on_file.expert_slots : 0;
  WorkCounter counter = {&work, fileTypeOf(type), on_file.rows};
  walkWeights(shape, &counter);
  return work;
}

}  // namespace oriel_internal
