#include "tools/shape.h"

#include "api/api.h"
#include "api/calibration.h"
#include "api/on_file_choice.h"
#include "api/recall.h"
#include "api/several.h"

namespace oriel_internal {
namespace {

// A tokenizer's tables. Measured on vocabularies of 384 to 262,000 entries: 26 to 37 bytes an entry, 16
// of them for its merge; Llama 3 has 280,147 merges for 128,256 entries.
constexpr uint64_t kHostBytesPerEntry = 56;
constexpr uint64_t kHostBytesPerLayer = 4096;

bool readWeights(oriel_weight_format format, WeightType* type) {
  switch (format) {
    case ORIEL_WEIGHTS_DEFAULT:
    case ORIEL_WEIGHTS_Q4_0:
      *type = WeightType::kQ4_0;
      return true;
    case ORIEL_WEIGHTS_Q8_0:
      *type = WeightType::kQ8_0;
      return true;
    case ORIEL_WEIGHTS_F16:
      *type = WeightType::kF16;
      return true;
  }
  return false;
}

}  // namespace

Status readShape(const char* name, oriel_weight_format weights, const Log& log,
                 const ModelShape** shape, WeightType* type) {
  *shape = findShape(name);
  if (*shape == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "no shape of the name %s is known: take one of the list (oriel plan --list)",
                    name);
  }
  if (!readWeights(weights, type)) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a weight format is not known: use Q4_0, Q8_0 or F16");
  }
  return kOk;
}

namespace {

/// A shape, for chooseOnFile().
struct ShapePlanner {
  const ModelShape* shape;
  WeightType type;
  PreparedModel* prepared;

  // Guesses have lists of ops of their own, and what they are looked up in.
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
    prepared->draft_host_bytes = arena.used();
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

Status prepareShape(const char* name, oriel_weight_format weights, const LoadOptions& options,
                    PreparedModel* prepared) {
  const Log log = logOf(options);
  const ModelShape* shape = nullptr;
  WeightType type = WeightType::kQ4_0;
  ORIEL_TRY(readShape(name, weights, log, &shape, &type));
  BudgetRequest request;
  ORIEL_TRY(readRequest(options, log, &request));
  if (options.calibration == nullptr && options.calibration_file != nullptr &&
      options.calibration_file[0] != '\0') {
    return log.fail(
        ORIEL_ERROR_ARGUMENT,
        "a shape is no file that was measured: plan for the file, or without a calibration");
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
  takeWindowProfile(prepared);
  return kOk;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_shape_list(oriel_shape_info* shapes, size_t capacity, size_t* needed) {
  if (needed == nullptr || (shapes == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = knownShapeCount();
  if (capacity < *needed) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  // An app may know a shorter or a longer struct: entries lie as far apart as its own.
  const size_t stride = shapes[0].struct_size;
  if (!validResult(shapes)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  for (uint32_t i = 0; i < *needed; ++i) {
    const ModelShape& shape = knownShape(i);
    oriel_shape_info info = {};
    copyText(shape.name, std::strlen(shape.name), info.name);
    info.n_layers = shape.n_layers;
    info.n_heads = shape.n_heads;
    info.n_kv_heads = shape.n_kv_heads;
    info.head_dim = shape.head_dim;
    info.n_embd = shape.n_embd;
    info.n_ff = shape.n_ff;
    info.n_vocab = shape.n_vocab;
    info.context_train = shape.context_train;
    const ShapeLayers& layers = shape.layers;
    info.sliding_layers = shape.count("s");
    info.sliding_window_tokens = layers.sliding_window;
    info.shared_layers = layers.shared_layers;
    info.latent_dim = layers.latent_dim != 0 ? layers.latent_dim + layers.rope_dim : 0;
    info.parameters = shapeParameters(shape);
    copyText(shape.architecture, std::strlen(shape.architecture), info.architecture);
    info.convolution_layers = shape.count("c");
    info.state_layers = shape.count("rb");
    info.state_bytes = memoryGrowth(modelDescOf(shape), CacheFormats()).fixed_bytes;
    info.n_experts = layers.experts.count;
    info.n_experts_used = layers.experts.used;
    uint8_t* out = reinterpret_cast<uint8_t*>(shapes) + i * stride;
    writeResult(info, reinterpret_cast<oriel_shape_info*>(out));
  }
  return ORIEL_OK;
}

oriel_status oriel_plan_shape(const char* name, oriel_weight_format weights,
                              const oriel_options* given, PlanResult* plan) {
  LoadOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (const Status checked = checkResult(plan, "oriel_plan", logOf(options)); !checked.ok()) {
    return checked.code();
  }
  if (name == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  PreparedModel prepared;
  const Status status = prepareShape(name, weights, options, &prepared);
  if (status.ok()) {
    warnBeyondTraining(prepared, logOf(options));
    writeResult(planResult(prepared), plan);
  }
  return status.code();
}
