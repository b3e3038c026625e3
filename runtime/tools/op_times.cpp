// Times of the ops of a model's plan, each alone on the device: oriel_op_times_measure.
#include <algorithm>
#include <cstring>

#include "api/api.h"
#include "api/describe.h"
#include "base/workspace.h"
#include "exec/load_weights.h"

namespace oriel_internal {
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
  ORIEL_TRY(createExecutor(options_, ExecutorUse::kProbe, plan_, memory, allocator_, {}, log_,
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
