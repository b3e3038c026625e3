#include "tools/known_shapes.h"

#include <algorithm>
#include <cstring>

#include "api/describe.h"
#include "api/plan_choices.h"
#include "api/session.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

// A tokenizer's tables. Measured on vocabularies of 384 to 262,000 entries: 26 to 37 bytes per entry, 16 of them for
// its merge; Llama 3 has 280,147 merges for 128,256 entries.
constexpr uint64_t kHostBytesPerEntry = 56;
constexpr uint64_t kHostBytesPerLayer = 4096;

bool readWeights(const char* format, WeightType* type) {
  *type = std::strcmp(format, "q8_0") == 0  ? WeightType::kQ8_0
          : std::strcmp(format, "f16") == 0 ? WeightType::kF16
                                            : WeightType::kQ4_0;
  return *type != WeightType::kQ4_0 || std::strcmp(format, "q4_0") == 0;
}

}  // namespace

Status readShape(const char* text, const Log& log, const ModelShape** shape, WeightType* type) {
  const char* const colon = std::strrchr(text, ':');
  const size_t bytes = colon != nullptr ? static_cast<size_t>(colon - text) : std::strlen(text);
  char name[64];
  copyText(text, bytes, name);
  *shape = findShape(name);
  if (*shape == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "no shape of the name %s is known: take one of the list (oriel plan --list)",
                    name);
  }
  if (!readWeights(colon != nullptr ? colon + 1 : "q4_0", type)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the weight format %s is not known: use q4_0, q8_0 or f16", colon + 1);
  }
  return kOk;
}

namespace {

/// A shape's planner for chooseOnFile().
struct ShapePlanner {
  const ModelShape* shape;
  WeightType type;
  PreparedModel* prepared;

  // Drafting needs its own op lists and lookup tables.
  static void takeDrafts(const OnFile& on_file, PreparedModel* prepared, BudgetRequest* request) {
    request->drafts = draftsOf(*prepared, on_file);
    Arena arena;
    if (request->drafts != 0) {
      const uint32_t* const n_ops = prepared->work.n_ops;
      const uint32_t ops = n_ops[static_cast<uint32_t>(StepList::kDecode)] +
                           n_ops[static_cast<uint32_t>(StepList::kHead)];
      (void)arena.take<uint8_t>(ops * (sizeof(Op) + kExecutorBytesPerOp));
      Drafter().init(request->drafts, &arena);
    }
    prepared->draft_host_bytes = request->draft_host_bytes = arena.used();
    request->host_bytes = prepared->model_host_bytes +
                          prepared->sessions.count * prepared->session_host_bytes + arena.used();
  }

  static Status plan(void* context, const OnFile& on_file, const Log& log, BudgetRequest* request) {
    const ShapePlanner& self = *static_cast<const ShapePlanner*>(context);
    PreparedModel& prepared = *self.prepared;
    prepared.totals = measureShape(*self.shape, self.type, on_file);
    prepared.work = workOf(*self.shape, prepared.desc, self.type, on_file);
    takeDrafts(on_file, &prepared, request);
    return chooseBudget(prepared.desc, prepared.totals, *request, log, &prepared.budget);
  }
};

Status prepareShape(const char* name, const LoadOptions& options, PreparedModel* prepared) {
  const Log log = logOf(options);
  const ModelShape* shape = nullptr;
  WeightType type = WeightType::kQ4_0;
  ORIEL_TRY(readShape(name, log, &shape, &type));
  BudgetRequest request;
  ORIEL_TRY(readRequest(options, log, &request));
  if (options.calibration == nullptr && options.calibration_file != nullptr &&
      options.calibration_file[0] != '\0') {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a shape has no calibration: plan for a file, or without a calibration");
  }
  prepared->memory_bytes = request.memory_bytes;
  prepared->calibrated = options.calibration != nullptr;
  if (prepared->calibrated) {
    readCalibration(*options.calibration, &prepared->measured);
  }
  prepared->desc = modelDescOf(*shape);
  prepared->weights_unknown = !shape->weightsKnown();

  ORIEL_TRY(readRecall(options, prepared->desc, log, &prepared->recall));
  request.recall = prepared->recall.tokens;
  Arena session_arena;
  (void)session_arena.take<oriel_session>(1);
  SessionContext context;
  context.model = &prepared->desc;
  context.recall = prepared->recall;
  prepared->transcript_bytes = context.transcript_bytes = options.transcript_bytes;
  (void)Session::create(context, 0, true, &session_arena);
  prepared->session_host_bytes = session_arena.used();
  prepared->model_host_bytes = sizeof(oriel_model) + kExecutorObjectBytes +
                               kHostBytesPerEntry * shape->n_vocab +
                               kHostBytesPerLayer * shape->n_layers;
  ORIEL_TRY(readSessions(options, options.prefix_tokens, log, prepared, &request));
  if (options.draft_model != nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a draft model guesses for a file, not for a shape: leave one of them out");
  }
  prepared->drafts = options.draft_tokens;
  ORIEL_TRY(readModelRequest(options, log, prepared, &request));
  ShapePlanner planner = {shape, type, prepared};
  ORIEL_TRY(chooseOnFile(options, log, {ShapePlanner::plan, &planner}, request, prepared));
  prepared->activation_bits = activationBits(options, prepared->work);
  takeWindowProfile(prepared);
  return kOk;
}

void writeShape(const ModelShape& shape, JsonWriter* out) {
  const ShapeLayers& layers = shape.layers;
  const uint64_t parameters = shapeParameters(shape);
  out->object();
  out->text("name", shape.name);
  out->text("architecture", shape.architecture);
  out->whole("n_layers", shape.n_layers);
  out->whole("n_heads", shape.n_heads);
  out->whole("n_kv_heads", shape.n_kv_heads);
  out->whole("head_dim", shape.head_dim);
  out->whole("n_embd", shape.n_embd);
  out->whole("n_ff", shape.n_ff);
  out->whole("n_vocab", shape.n_vocab);
  out->whole("context_train", shape.context_train);
  out->whole("local_layers", shape.count("s"));
  out->whole("local_window_tokens", layers.sliding_window);
  out->whole("shared_layers", layers.shared_layers);
  out->whole("latent_dim", layers.latent_dim != 0 ? layers.latent_dim + layers.rope_dim : 0);
  out->whole("convolution_layers", shape.count("c"));
  out->whole("state_layers", shape.count("rb"));
  out->whole("state_bytes", memoryGrowth(modelDescOf(shape), CacheFormats()).fixed_bytes);
  out->whole("n_experts", layers.experts.count);
  out->whole("n_experts_used", layers.experts.used);
  parameters != 0 ? out->whole("parameters", parameters) : out->null("parameters");
  out->end();
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_shape_list(char* json, size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  JsonWriter out(json, capacity);
  out.object();
  out.list("shapes");
  for (uint32_t i = 0; i < knownShapeCount(); ++i) {
    writeShape(knownShape(i), &out);
  }
  out.end();
  out.end();
  return out.finish(needed);
}

oriel_status oriel_shape_describe(const char* shape, const oriel_options* given, char* json,
                                  size_t capacity, size_t* needed) {
  if (shape == nullptr || !validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  CallOptions options;
  PreparedModel prepared;
  Status status = takeModelOptions(given, &options);
  status = status.ok() ? prepareShape(shape, options, &prepared) : status;
  if (!status.ok()) {
    return status.code();
  }
  warnBeyondTraining(prepared, logOf(options));
  JsonWriter out(json, capacity);
  writePlanObject(nullptr, planResult(prepared), &out);
  return out.finish(needed);
}

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
