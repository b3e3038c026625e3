#include "tools/shape.h"

#include <cstring>

#include "api/calibration.h"
#include "api/describe.h"
#include "api/on_file_choice.h"
#include "api/recall.h"
#include "api/several.h"

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
