#include <algorithm>
#include <cstring>

#include "api/api.h"
#include "api/describe.h"
#include "base/arena.h"
#include "base/half.h"
#include "exec/load_weights.h"
#include "speed/measure_speed.h"
#include "tools/known_shapes.h"

namespace oriel_internal {
namespace {

struct DeviceChoice {
  const LoadOptions* options;
  oriel_allocator allocator;
  SharedParts shared;
};

Status makeExecutor(const void* context, const Plan& plan, const ExecutorMemory& memory,
                    Executor** executor) {
  const DeviceChoice& choice = *static_cast<const DeviceChoice*>(context);
  return createExecutor(*choice.options, ExecutorUse::kProbe, plan, memory, choice.allocator,
                        choice.shared, logOf(*choice.options), nullptr, executor);
}

Status checkDevice(const LoadOptions& options) {
  const Log log = logOf(options);
  BudgetRequest checked;
  ORIEL_TRY(readRequest(options, log, &checked));
  if (options.device == DeviceKind::kNone) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the device name is empty: give a device");
  }
  return kOk;
}

oriel_speed publicSpeed(const DeviceSpeed& measured) {
  static_assert(kMaxSpeedWeights == ORIEL_SPEED_WEIGHTS && kMaxSpeedCaches == ORIEL_SPEED_CACHES,
                "as many as the app has room for");
  oriel_speed speed;
  std::memset(static_cast<void*>(&speed), 0, sizeof(speed));
  speed.struct_size = sizeof(speed);
  copyText(measured.device, std::strlen(measured.device), speed.device);
  copyText(measured.driver, std::strlen(measured.driver), speed.driver);
  speed.submit_ns = measured.submit_ns;
  speed.dispatch_ns = measured.dispatch_ns;
  speed.read_bytes_per_s = measured.read_bytes_per_s;
  speed.shape = measured.shape;
  speed.kernels_changed = measured.kernels_changed;
  speed.file_bytes_per_s = measured.file_bytes_per_s;
  for (; speed.weight_count < measured.weight_count; ++speed.weight_count) {
    const WeightSpeed& rate = measured.weights[speed.weight_count];
    speed.weights[speed.weight_count] = {rate.tensor_type, rate.decode_ns, rate.chunk_ns,
                                         rate.chunk_token_ns, rate.head_ns};
  }
  for (; speed.cache_count < measured.cache_count; ++speed.cache_count) {
    const CacheSpeed& rate = measured.caches[speed.cache_count];
    speed.caches[speed.cache_count] = {publicFormat(rate.k_format),
                                       publicFormat(rate.v_format),
                                       rate.decode_ns,
                                       rate.chunk_ns,
                                       rate.append_ns,
                                       rate.chunk_append_ns};
  }
  return speed;
}

// The part of a plan's JSON that oriel_plan_predict needs.
struct PlanCost {
  double visible = 0;
  StepCost decode;
  StepCost prefill;
};

double numberOf(const JsonValue& object, const char* name) {
  const JsonValue* const value = object.find(name);
  char digits[40] = "";
  if (value != nullptr && value->isNumber()) {
    copyText(value->text().data, value->text().bytes, digits);
  }
  const char* end = digits;
  double number = 0;
  return readDecimal(digits, &end, &number) ? number : 0;
}

bool readStep(const JsonValue& plan, const char* name, StepCost* cost) {
  const JsonValue* const step = plan.find(name);
  const JsonValue* const groups = step != nullptr ? step->find("groups") : nullptr;
  if (groups == nullptr || !groups->isArray()) {
    return false;
  }
  cost->tokens = static_cast<uint32_t>(numberOf(*step, "tokens"));
  cost->overhead_s = numberOf(*step, "overhead_s");
  cost->weights_s = numberOf(*step, "weights_s");
  cost->weights_once_s = numberOf(*step, "weights_once_s");
  cost->head_s = numberOf(*step, "head_s");
  for (const JsonValue* one = groups->first(); one != nullptr && cost->n_views < kMaxViews;
       one = one->next()) {
    cost->seen[cost->n_views++] = {static_cast<uint32_t>(numberOf(*one, "window_tokens")),
                                   numberOf(*one, "s_per_token")};
  }
  return cost->tokens != 0;
}

oriel_status readCost(const char* json, size_t bytes, PlanCost* cost) {
  Scratch scratch(defaultAllocator(), kJsonBytesPerByte * bytes + kJsonBaseBytes);
  const JsonValue* plan = nullptr;
  if (!parseJson(json, bytes, "the plan", Log(), &scratch, &plan).ok()) {
    return ORIEL_ERROR_ARGUMENT;
  }
  cost->visible = numberOf(*plan, "sink_tokens") + numberOf(*plan, "window_tokens");
  return readStep(*plan, "decode", &cost->decode) && readStep(*plan, "prefill", &cost->prefill)
             ? ORIEL_OK
             : ORIEL_ERROR_STATE;
}

Status measure(SpeedTarget target, const WorkShape& work, bool again, const LoadOptions& options,
               oriel_speed* speed) {
  target.activation_bits = activationBits(options, work);
  DeviceChoice choice;
  choice.options = &options;
  choice.allocator = allocatorOf(options);
  choice.shared.activation_bits = target.activation_bits;
  // Stored rates are for the default number of threads.
  const char* const cache_dir =
      options.cpu_threads == 0 ? folderOrNone(options.cache_dir) : nullptr;
  DeviceSpeed measured;
  ORIEL_TRY(measureSpeed({makeExecutor, &choice}, target, cache_dir, again,
                         {options.progress, options.progress_user}, choice.allocator,
                         logOf(options), &measured));
  *speed = publicSpeed(measured);
  return kOk;
}

Status measureFile(const char* path, bool again, const LoadOptions& options, oriel_speed* speed) {
  const Log log = logOf(options);
  ORIEL_TRY(checkDevice(options));
  if (path == nullptr) {
    return measure(anySpeedTarget(), {}, again, options, speed);
  }
  ModelFile source;
  ModelDesc desc;
  TensorIndex tensors;
  ORIEL_TRY(source.open(path, allocatorOf(options), log));
  ORIEL_TRY(readModelDesc(source.gguf(), allocatorOf(options), log, &desc, &tensors));
  const WorkShape work = workOf(tensors, desc, PlanTotals());
  ORIEL_TRY(measure(speedTargetOf(desc, work), work, again, options, speed));
  ORIEL_TRY(
      measureFileSpeed(source, tensors, desc, allocatorOf(options), log, &speed->file_bytes_per_s));
  return source.expectUnchanged(log);
}

Status measureShape(const char* name, bool again, const LoadOptions& options, oriel_speed* speed) {
  const ModelShape* shape = nullptr;
  WeightType type = WeightType::kQ4_0;
  ORIEL_TRY(checkDevice(options));
  ORIEL_TRY(readShape(name, logOf(options), &shape, &type));
  const ModelDesc desc = modelDescOf(*shape);
  const WorkShape work = workOf(*shape, desc, type);
  return measure(work.known ? speedTargetOf(desc, work) : anySpeedTarget(), work, again, options,
                 speed);
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_speed_measure(const char* path, const char* shape, int again,
                                 const oriel_options* given, oriel_speed* speed) {
  if (path != nullptr && shape != nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  CallOptions options;
  oriel_speed measured;
  Status status = takeModelOptions(given, &options);
  status = status.ok() ? checkResult(speed, "oriel_speed", logOf(options)) : status;
  if (status.ok()) {
    status = shape != nullptr ? measureShape(shape, again != 0, options, &measured)
                              : measureFile(path, again != 0, options, &measured);
  }
  if (status.ok()) {
    writeResult(measured, speed);
  }
  return status.code();
}

oriel_status oriel_plan_predict(const char* json, size_t bytes, uint64_t depth_tokens,
                                uint32_t prompt_tokens, oriel_prediction* out) {
  if (json == nullptr || !validResult(out)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  PlanCost plan;
  if (const oriel_status read = readCost(json, bytes, &plan); read != ORIEL_OK) {
    return read;
  }
  const double visible = plan.visible;
  const double depth = std::min(static_cast<double>(depth_tokens), visible);
  oriel_prediction prediction = {};
  const StepCost& decode = plan.decode;
  const double seconds = stepSeconds(decode, depth) + decode.head_s;
  prediction.decode_tokens_per_s = seconds > 0 ? 1 / seconds : 0;
  const double weights = decode.weights_s + decode.head_s;
  const double cache = stepSeconds(decode, depth) - stepSeconds(decode, 0);
  prediction.decode_limit = weights >= cache && weights >= decode.overhead_s ? ORIEL_LIMIT_WEIGHTS
                            : cache >= decode.overhead_s                     ? ORIEL_LIMIT_CACHE
                                                                             : ORIEL_LIMIT_OVERHEAD;
  // Sliding windows only make the real depth larger than on this line.
  if (decode.seen[0].s_per_token > 0) {
    prediction.crossover_tokens = weights / decode.seen[0].s_per_token;
  }
  const uint32_t prompt = prompt_tokens != 0 ? prompt_tokens : plan.prefill.tokens;
  double prefill_seconds = 0;
  for (uint32_t done = 0; done < prompt;) {
    const uint32_t tokens = std::min(plan.prefill.tokens, prompt - done);
    const double seen = std::min(depth + done + (tokens + 1) / 2.0, visible);
    // Once the window is full, all whole chunks take equally long.
    const uint32_t alike = seen < visible ? 1 : (prompt - done) / tokens;
    StepCost cost = plan.prefill;
    const double share = static_cast<double>(tokens) / plan.prefill.tokens;
    // A shorter last chunk still unpacks all weights.
    for (StepCost::Seen& group : cost.seen) {
      group.s_per_token *= share;
    }
    cost.weights_s = cost.weights_once_s + (cost.weights_s - cost.weights_once_s) * share;
    prefill_seconds += alike * stepSeconds(cost, seen);
    done += alike * tokens;
  }
  prefill_seconds += plan.prefill.head_s;
  prediction.prefill_tokens_per_s = prefill_seconds > 0 ? prompt / prefill_seconds : 0;
  writeResult(prediction, out);
  return ORIEL_OK;
}

namespace oriel_internal {

// Times of the ops of a model's plan, each alone on the device: oriel_op_times_measure.

namespace {

struct TimedList {
  StepList list;
  const char* name;
};
constexpr TimedList kTimedLists[] = {
    {StepList::kDecode, "decode"}, {StepList::kChunk, "prefill"}, {StepList::kHead, "head"}};

bool hasWeights(OpKind kind) {
  return kind == OpKind::kEmbed || kind == OpKind::kMatmul || kind == OpKind::kExpertMatmul ||
         kind == OpKind::kHeadMatmul;
}

/// A plan on a device, with the memory of both.
class OpTimer {
 public:
  OpTimer(const char* path, const LoadOptions& options)
      : path_(path), options_(options), allocator_(allocatorOf(options)), log_(logOf(options)) {}
  ~OpTimer() {
    destroyExecutor(executor_);
    for (const Block& block : blocks_) {
      if (block.data != nullptr) {
        release(allocator_, block.data, block.bytes);
      }
    }
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

  Status load();
  Status time(uint64_t depth, uint32_t repeat, oriel_op_time_fn on_op, void* user);

 private:
  struct Block {
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  Status take(uint64_t bytes, Block* block);
  void fillStep(uint32_t n_tokens, uint32_t depth);
  void report(const TimedList& timed, const OpTime* times, oriel_op_time_fn on_op,
              void* user) const;

  const char* const path_;
  const LoadOptions& options_;
  const oriel_allocator allocator_;
  const Log log_;
  PreparedModel prepared_;
  Plan plan_;
  Executor* executor_ = nullptr;
  Block blocks_[2];
};

Status OpTimer::take(uint64_t bytes, Block* block) {
  *block = {allocateZeroed(allocator_, bytes), bytes};
  return block->data != nullptr ? Status(kOk)
                                : log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                            "the system refused %llu bytes: close other programs",
                                            static_cast<unsigned long long>(bytes));
}

Status OpTimer::load() {
  ORIEL_TRY(prepareModel(path_, options_, &prepared_));
  if (!prepared_.budget.fits) {
    return log_.fail(ORIEL_ERROR_MEMORY_BUDGET,
                     "the model does not fit this memory: give more, or a smaller window");
  }
  ExecutorMemory memory;
  const auto build = [&](Arena* arena) -> Status {
    ORIEL_TRY(buildPlan(prepared_.tensors, prepared_.desc, prepared_.totals, prepared_.budget.cache,
                        prepared_.budget.formats, prepared_.budget.chunk, log_, arena, &plan_));
    memory = takeExecutorMemory(plan_, arena);
    return kOk;
  };
  Arena measuring;
  ORIEL_TRY(build(&measuring));
  ORIEL_TRY(take(measuring.used(), &blocks_[0]));
  Arena arena(blocks_[0].data, measuring.used());
  ORIEL_TRY(build(&arena));
  SharedParts shared;
  shared.activation_bits = prepared_.activation_bits;
  ORIEL_TRY(createExecutor(options_, ExecutorUse::kProbe, plan_, memory, allocator_, shared, log_,
                           nullptr, &executor_));
  ORIEL_TRY(loadWeights(prepared_.source.gguf(), plan_, LoadProgress(), {allocator_}, log_,
                        executor_, nullptr));
  return executor_->finishLoad();
}

// Prepares the step block for n_tokens tokens after `depth` others. The content of the cache does not matter.
void OpTimer::fillStep(uint32_t n_tokens, uint32_t depth) {
  std::memset(executor_->step(), 0, static_cast<size_t>(plan_.step.size_bytes));
  const StepBlock block(executor_->step());
  block.header().n_tokens = n_tokens;
  block.header().n_outputs = 1;
  block.header().token_words = tokenWords(plan_.n_views);
  const CacheShape& cache = plan_.cache;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    const uint32_t at = depth + t;
    block.token(t).token = (1 + 17 * t) % prepared_.desc.n_vocab;
    for (uint32_t v = 1; v < plan_.n_views; ++v) {
      block.view(t, v).slot = 1;  // a slot of a state to another
      block.view(t, v).count = 1;
    }
    View& view = block.view(t, 0);
    view.slot = at < cache.sinks ? at : cache.sinks + (at - cache.sinks) % cache.ring;
    view.n_sinks = std::min(at + 1, cache.sinks);
    view.count = std::min(at + 1 - view.n_sinks, cache.window);
    view.begin = (at + 1 - view.n_sinks - view.count) % cache.ring;
    view.ring = cache.ring;
    view.all_ring = cache.ringSlots();
  }
}

Status OpTimer::time(uint64_t depth, uint32_t repeat, oriel_op_time_fn on_op, void* user) {
  uint32_t most = 0;
  for (const TimedList& timed : kTimedLists) {
    most = std::max(most, plan_.n_ops[static_cast<uint32_t>(timed.list)]);
  }
  ORIEL_TRY(take(2 * sizeof(OpTime) * std::max(most, 1u), &blocks_[1]));
  OpTime* const least = static_cast<OpTime*>(blocks_[1].data);
  OpTime* const times = least + most;
  for (const TimedList& timed : kTimedLists) {
    const uint32_t n_ops = plan_.n_ops[static_cast<uint32_t>(timed.list)];
    const bool is_chunk = timed.list == StepList::kChunk;
    const uint64_t seen = std::min<uint64_t>(depth, plan_.cache.window);
    fillStep(is_chunk ? plan_.chunk_tokens : 1, static_cast<uint32_t>(seen));
    for (uint32_t round = 0; round <= repeat; ++round) {  // the first warms up
      if (const Status status = executor_->timeOps(timed.list, times); !status.ok()) {
        return isCpuName(executor_->deviceName())
                   ? log_.fail(ORIEL_ERROR_UNSUPPORTED,
                               "the CPU has no timestamps to time ops by: choose a Vulkan device")
                   : status;
      }
      for (uint32_t i = 0; i < n_ops; ++i) {
        if (round <= 1 || times[i].ms < least[i].ms) {
          least[i] = times[i];
        }
      }
    }
    report(timed, least, on_op, user);
  }
  return kOk;
}

// Ops of the same kind and type of weights are one line. Lines are in the order of the plan.
void OpTimer::report(const TimedList& timed, const OpTime* times, oriel_op_time_fn on_op,
                     void* user) const {
  const uint32_t l = static_cast<uint32_t>(timed.list);
  const Op* const ops = plan_.ops[l];
  const auto alike = [&](uint32_t i, uint32_t k) {
    return ops[i].kind == ops[k].kind &&
           (!hasWeights(ops[i].kind) || ops[i].weights == ops[k].weights);
  };
  for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
    uint32_t before = 0, count = 0;
    OpTime sum = {};
    for (uint32_t k = 0; k < plan_.n_ops[l]; ++k) {
      before += k < i && alike(i, k) ? 1 : 0;
      count += alike(i, k) ? 1 : 0;
      if (alike(i, k)) {
        sum = {sum.ms + times[k].ms, sum.expected_ms + times[k].expected_ms,
               sum.dispatches + times[k].dispatches};
      }
    }
    if (before == 0) {
      char name[64];
      std::snprintf(name, sizeof(name), "%s%s%s", opTraits(ops[i].kind).name,
                    hasWeights(ops[i].kind) ? " " : "",
                    hasWeights(ops[i].kind) ? weightTypeName(ops[i].weights) : "");
      on_op(timed.name, name, count, sum.dispatches, sum.ms, sum.expected_ms, user);
    }
  }
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_op_times_measure(const char* path, uint64_t depth_tokens, uint32_t repeat,
                                    const oriel_options* given, oriel_op_time_fn on_op,
                                    void* user) {
  if (path == nullptr || on_op == nullptr || repeat == 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  CallOptions options;
  if (const Status status = takeModelOptions(given, &options); !status.ok()) {
    return status.code();
  }
  OpTimer timer(path, options);
  Status status = timer.load();
  status = status.ok() ? timer.time(depth_tokens, repeat, on_op, user) : status;
  return status.code();
}
