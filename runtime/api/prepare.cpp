#include "api/api.h"

namespace oriel {
namespace {

// Without a cap: this share of what the system has free.
constexpr uint64_t kDefaultMemoryShare = 2;
// When the system does not say what it has.
constexpr uint64_t kDefaultMemoryBytes = 1ull << 30;

uint64_t memoryCap(const oriel_options& options) {
  if (options.memory_bytes != 0) {
    return options.memory_bytes;
  }
  const uint64_t free_bytes = freeMemoryBytes();
  return free_bytes != 0 ? free_bytes / kDefaultMemoryShare : kDefaultMemoryBytes;
}

Status checkFormats(const oriel_options& options, const Log& log) {
  for (const oriel_kv_format format : {options.k_format, options.v_format}) {
    if (format != ORIEL_KV_AUTO && format != ORIEL_KV_F16) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "cache format %d is not known: use f16",
                      static_cast<int>(format));
    }
  }
  return kOk;
}

}  // namespace

Status prepareModel(const char* path, const oriel_options& options, PreparedModel* prepared) {
  const Log log = logOf(options);
  ORIEL_TRY(checkFormats(options, log));
  ORIEL_TRY(prepared->mapping.open(path, log));
  ORIEL_TRY(prepared->file.open(prepared->mapping.data(), prepared->mapping.bytes(), log));

  Arena model_arena;
  (void)model_arena.take<oriel_model>(1);
  Tokenizer* tokenizer = nullptr;
  if (options.device == ORIEL_DEVICE_NONE) {
    // A file of an architecture that cannot run here still has a tokenizer.
    if (!readModelDesc(prepared->file, Log(), &prepared->desc).ok()) {
      prepared->desc = ModelDesc();
    }
    ORIEL_TRY(Tokenizer::build(prepared->file, log, &model_arena, &tokenizer));
    prepared->model_host_bytes = model_arena.used();
    return kOk;
  }
  ORIEL_TRY(readModelDesc(prepared->file, log, &prepared->desc));
  ORIEL_TRY(Tokenizer::build(prepared->file, log, &model_arena, &tokenizer));
  ORIEL_TRY(measureWeights(prepared->file, prepared->desc, log, &prepared->totals));

  // Host bytes depend on neither window nor chunk: measure them with the smallest.
  const CacheShape smallest = {prepared->desc.n_kv_heads, prepared->desc.head_dim, 0, 1, 1};
  Plan plan;
  ORIEL_TRY(buildPlan(prepared->file, prepared->desc, prepared->totals, smallest, 1, log,
                      &model_arena, &plan));
  (void)takeExecutorMemory(plan, &model_arena);
  prepared->model_host_bytes = model_arena.used();
  Arena session_arena;
  (void)session_arena.take<oriel_session>(1);
  SessionContext context;
  context.model = &prepared->desc;
  (void)Session::create(context, 0, &session_arena);
  prepared->session_host_bytes = session_arena.used();

  BudgetRequest request;
  prepared->memory_bytes = memoryCap(options);
  request.memory_bytes = prepared->memory_bytes;
  request.window = options.window_tokens;
  request.sinks = options.sink_tokens == 0            ? kDefaultSinks
                  : options.sink_tokens == UINT32_MAX ? 0
                                                      : options.sink_tokens;
  request.pinned = options.pinned_tokens;
  request.chunk = options.chunk_tokens;
  request.host_bytes = prepared->model_host_bytes + prepared->session_host_bytes;
  return chooseBudget(prepared->desc, prepared->totals, request, log, &prepared->budget);
}

oriel_plan planResult(const PreparedModel& prepared) {
  const Budget& budget = prepared.budget;
  const ModelDesc& desc = prepared.desc;
  oriel_plan plan = {};
  plan.struct_size = sizeof(plan);
  plan.fits = budget.fits ? 1 : 0;
  plan.memory_bytes = prepared.memory_bytes;
  plan.total_bytes = budget.bytes.total();
  plan.weights_bytes = budget.bytes.weights;
  plan.kv_bytes = budget.bytes.cache;
  plan.activation_bytes = budget.bytes.activations;
  plan.staging_bytes = budget.bytes.io;
  plan.host_bytes = budget.bytes.host;
  plan.minimum_bytes = budget.minimum_bytes;
  plan.kv_bytes_per_token =
      2 * desc.n_layers * kvSideBytesPerToken(KvFormat::kF16, desc.n_kv_heads, desc.head_dim);
  plan.window_tokens = budget.cache.window;
  plan.sink_tokens = budget.cache.sinks;
  plan.ring_tokens = budget.cache.ring;
  plan.chunk_tokens = budget.chunk;
  plan.context_train_tokens = desc.context_train;
  plan.k_format = ORIEL_KV_F16;
  plan.v_format = ORIEL_KV_F16;
  plan.weights_read_bytes_per_token = prepared.totals.weights_read_bytes_per_token;
  plan.crossover_tokens = plan.weights_read_bytes_per_token / plan.kv_bytes_per_token;
  return plan;
}

}  // namespace oriel

using namespace oriel;

oriel_status oriel_plan_file(const char* path, const oriel_options* given, oriel_plan* plan) {
  oriel_options options;
  if (!readOptions(given, &options) || path == nullptr || !validResult(plan) ||
      options.device == ORIEL_DEVICE_NONE) {
    return ORIEL_ERROR_ARGUMENT;
  }
  PreparedModel prepared;
  const Status status = prepareModel(path, options, &prepared);
  if (status.ok()) {
    writeResult(planResult(prepared), plan);
  }
  return status.code();
}
