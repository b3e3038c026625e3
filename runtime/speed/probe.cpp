#include "speed/probe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "base/arena.h"
#include "base/checked.h"
#include "exec/load_weights.h"
#include "os/os.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kLargestBlock = 256;  // values
constexpr uint32_t kFewRows = 32;

uint64_t layerBytes(ProbeShape shape) {
  shape.n_layers = 1;
  shape.n_vocab = kFewRows;
  return probeFileBytes(shape);
}

uint32_t wholeBlocks(uint32_t values) {
  return static_cast<uint32_t>(alignUp(values, kLargestBlock));
}

/// Halves the widths, feed-forward first: for large matrices the speed hardly depends on the size. False at the minimum.
bool halve(ProbeShape* shape) {
  if (shape->n_ff > shape->n_embd) {
    shape->n_ff = wholeBlocks(shape->n_ff / 2);
  } else if (shape->n_heads % 2 == 0 && shape->n_kv_heads % 2 == 0 && shape->n_embd >= 2048) {
    shape->n_embd = wholeBlocks(shape->n_embd / 2);
    shape->n_heads /= 2;
    shape->n_kv_heads /= 2;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape) {
  *shape = model;
  shape->tensor_type = tensor_type;
  if (layerBytes(*shape) == 0) {
    shape->n_embd = wholeBlocks(shape->n_embd);
    shape->n_ff = wholeBlocks(shape->n_ff);
    while (shape->n_heads * shape->head_dim % kLargestBlock != 0) {
      shape->n_heads += shape->n_kv_heads;
    }
    if (layerBytes(*shape) == 0) {
      return false;
    }
  }
  while (layerBytes(*shape) > layer_bytes && halve(shape)) {
  }
  if (layerBytes(*shape) == 0) {
    return false;
  }
  // The embedding is stored like the output matrix: both have n_vocab rows.
  ProbeShape rows = *shape;
  rows.n_layers = 1;
  rows.n_vocab = 2 * kFewRows;
  const uint64_t row_bytes = (probeFileBytes(rows) - layerBytes(*shape)) / kFewRows;
  const uint64_t most_rows =
      std::max<uint64_t>(head_bytes / std::max<uint64_t>(row_bytes, 1), kFewRows);
  shape->n_vocab = static_cast<uint32_t>(std::min<uint64_t>(shape->n_vocab, most_rows));
  return true;
}

uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes) {
  const uint64_t layers = bytes / std::max<uint64_t>(layerBytes(shape), 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(layers, 1, std::max(shape.n_layers, 1u)));
}

namespace {

// Runs of one timing, after a warm-up run (skipped if runs are long). The median counts, and of two the faster: it
// includes waiting for threads, which the minimum would leave out. Short runs are repeated more often; slow steps as
// rarely as the caller allows.
constexpr uint32_t kEnoughRuns = 6;
constexpr uint32_t kMostRuns = 30;
constexpr double kRunsMs = 10.0;
constexpr double kSlowRunsMs = 30.0;

template <typename Prepare, typename Run>
Status usualSeconds(const Prepare& prepare, const Run& run, double* seconds, uint32_t fewest = 2) {
  double runs_ms[kMostRuns];
  uint32_t n = 0;
  double spent_ms = 0;
  for (uint32_t i = 0; i <= kMostRuns; ++i) {
    ORIEL_TRY(prepare());
    const double begin = nowMs();
    ORIEL_TRY(run());
    const double ms = nowMs() - begin;
    if (i == 0 && ms < kSlowRunsMs) {
      continue;
    }
    runs_ms[n++] = ms;
    spent_ms += ms;
    if ((i >= kEnoughRuns && spent_ms > kRunsMs) || (n >= fewest && spent_ms > kSlowRunsMs)) {
      break;
    }
  }
  const uint32_t middle = (n - 1) / 2;
  std::nth_element(runs_ms, runs_ms + middle, runs_ms + n);
  *seconds = runs_ms[middle] / 1000;
  return kOk;
}

Status nothing() { return kOk; }

bool isOfCache(const Op& op) {
  return op.kind == OpKind::kRopeAppend || op.kind == OpKind::kAttention ||
         op.kind == OpKind::kAttentionMerge;
}

void keepOpsOfCache(Plan* plan) {
  for (uint32_t list = 0; list < kStepLists; ++list) {
    Op* const ops = plan->ops[list];
    Op* const end =
        std::remove_if(ops, ops + plan->n_ops[list], [](const Op& op) { return !isOfCache(op); });
    plan->n_ops[list] = static_cast<uint32_t>(end - ops);
  }
}

}  // namespace

void Probe::close() {
  destroyExecutor(executor_);
  executor_ = nullptr;
  session_ = nullptr;
  while (n_blocks_ != 0) {
    --n_blocks_;
    release(allocator_, blocks_[n_blocks_], block_bytes_[n_blocks_]);
  }
}

Status Probe::take(uint64_t bytes, void** block) {
  *block = allocateZeroed(allocator_, bytes);
  if (*block == nullptr) {
    return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                     "the system refused %llu bytes to measure with: close other programs",
                     static_cast<unsigned long long>(bytes));
  }
  blocks_[n_blocks_] = *block;
  block_bytes_[n_blocks_++] = bytes;
  return kOk;
}

Status Probe::open(const ProbeShape& shape, const CacheFormats& formats, uint32_t window,
                   uint32_t chunk, const ExecutorMaker& maker, ProbeOps ops) {
  const uint64_t file_bytes = probeFileBytes(shape);
  if (file_bytes == 0) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  close();
  void* bytes = nullptr;
  ORIEL_TRY(take(file_bytes, &bytes));
  writeProbeFile(shape, static_cast<uint8_t*>(bytes));
  ORIEL_TRY(file_.open(static_cast<const uint8_t*>(bytes), file_bytes, log_));
  // A missing kernel is a result, not an error.
  if (!readModelDesc(file_, allocator_, Log(), &desc_, &tensors_).ok()) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  PlanTotals totals;
  ORIEL_TRY(measureWeights(tensors_, desc_, OnFile(), log_, &totals));

  const CacheShape cache = {desc_.n_kv_heads, desc_.head_dim, kDefaultSinks, window,
                            window + chunk - 1};
  ExecutorMemory memory;
  const auto build = [&](Arena* arena) -> Status {
    ORIEL_TRY(buildPlan(tensors_, desc_, totals, cache, formats, chunk, log_, arena, &plan_));
    if (ops == ProbeOps::kCache && !arena->measuring()) {
      keepOpsOfCache(&plan_);
    }
    memory = takeExecutorMemory(plan_, arena);
    SessionContext context;
    context.model = &desc_;
    context.plan = &plan_;
    context.log = log_;
    if (!arena->measuring()) {
      ORIEL_TRY(maker.make(maker.context, plan_, memory, &executor_));
    }
    context.executor = executor_;
    session_ = Session::create(context, 0, false, arena);
    return kOk;
  };
  Arena measuring;
  ORIEL_TRY(build(&measuring));
  void* block = nullptr;
  ORIEL_TRY(take(measuring.used(), &block));
  Arena arena(block, measuring.used());
  ORIEL_TRY(build(&arena));
  if (session_ == nullptr) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "the probe's arena is too small: please report this");
  }
  ORIEL_TRY(loadWeights(file_, plan_, LoadProgress(), {allocator_}, log_, executor_, nullptr));
  ORIEL_TRY(executor_->finishLoad());
  return session_->reset(Session::Begin::kAgain);
}

Status Probe::read(const int32_t* ids, uint32_t count) {
  TokenSource source;
  source.ids = ids;
  source.count = count;
  return session_->append(source);
}

Status Probe::time(uint32_t tokens, uint32_t depth, double* seconds, uint32_t fewest) {
  int32_t ids[kMaxProbeChunk] = {};
  uint32_t turn = 0;
  return usualSeconds(
      [&] {
        // Changes the tokens: a processor is a tenth faster on numbers it has just seen.
        for (int32_t& id : ids) {
          turn += 7;
          id = static_cast<int32_t>(turn % desc_.n_vocab);
        }
        return kOk;
      },
      [&] {
        session_->pretendPosition(depth > tokens ? depth - tokens : 0);
        return read(ids, std::min(tokens, kMaxProbeChunk));
      },
      seconds, fewest);
}

Status Probe::timeHead(double* seconds) {
  return usualSeconds(
      nothing, [&] { return executor_->run(StepRun::kHead); }, seconds);
}

Status Probe::timeHeadAfterLayers(double* seconds) {
  static const int32_t kIds[2] = {};
  session_->pretendPosition(0);
  ORIEL_TRY(read(kIds, 2));
  return usualSeconds([&] { return executor_->run(StepRun::kChunk); },
                      [&] { return executor_->run(StepRun::kHead); }, seconds);
}

namespace {

// One layer with matrices of a 0.5 to 1 billion weight model; larger ones if these are fast, smaller ones if slow.
constexpr ProbeShape kSmall = {1, 512, 8, 4, 64, 1536, 32, 0};
constexpr ProbeShape kUsual = {1, 1024, 16, 8, 64, 2816, 32, 0};
constexpr ProbeShape kLarge = {1, 2048, 32, 8, 64, 5632, 32, 0};
constexpr double kLongEnoughToCompareSeconds = 1e-3;
constexpr double kTooLongSeconds = 0.1;
constexpr uint64_t kMostFileBytes = 64ull << 20;
constexpr uint32_t kWindow = 64;
constexpr uint32_t kDepth = 32;
// Runs twice if it is fast, to save time on software devices.
constexpr double kQuickSeconds = 5e-3;
// Another candidate must be faster by more than the noise.
constexpr double kWorthwhile = 0.97;

Status timeCandidates(Probe* probe, MatmulUse use, WeightType type, uint32_t rounds,
                      MatmulTimes* times) {
  MatmulTuning* const tuning = probe->executor()->matmulTuning();
  // Alternates between the candidates, so that a busy moment of the machine does not affect a single candidate.
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < times->count; ++i) {
      ORIEL_TRY(tuning->take(use, type, i));
      double seconds = 0;
      ORIEL_TRY(probe->time(tunedTokens(use), kDepth, &seconds));
      const double microseconds = seconds * 1e6;
      times->microseconds[i] =
          round == 0 ? microseconds : std::min(times->microseconds[i], microseconds);
    }
  }
  const double* const all = times->microseconds;
  const uint32_t best = static_cast<uint32_t>(std::min_element(all, all + times->count) - all);
  times->chosen = all[best] < kWorthwhile * all[times->standard] ? best : times->standard;
  ORIEL_TRY(tuning->take(use, type, times->chosen));
  times->kept = tuning->keep(use, type, times->chosen);
  return kOk;
}

}  // namespace

Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times) {
  *times = MatmulTimes();
  WeightType type;
  if (!weightTypeOf(tensor_type, &type)) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  ProbeShape larger = kLarge;
  larger.tensor_type = tensor_type;
  const bool has_larger = probeFileBytes(larger) <= kMostFileBytes;
  ProbeShape shape = kUsual;
  for (bool first = true;; first = false) {
    shape.tensor_type = tensor_type;
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(shape, CacheFormats(), kWindow, tunedTokens(use), maker));
    const MatmulTuning* const tuning = probe.executor()->matmulTuning();
    if (tuning == nullptr || tuning->candidateName(use, type, 1) == nullptr ||
        (!again && tuning->isMeasured(use, type))) {
      return kOk;
    }
    double seconds = 0;
    ORIEL_TRY(probe.time(tunedTokens(use), kDepth, &seconds, 1));
    if (first && seconds < kLongEnoughToCompareSeconds && has_larger) {
      shape = kLarge;
      continue;
    }
    if (first && seconds > kTooLongSeconds) {
      shape = kSmall;
      continue;
    }
    times->standard = tuning->standard(use, type);
    for (const char* name = tuning->candidateName(use, type, 0);
         name != nullptr && times->count < kMostMatmulCandidates;
         name = tuning->candidateName(use, type, times->count)) {
      std::snprintf(times->names[times->count++], sizeof(times->names[0]), "%s", name);
    }
    return timeCandidates(&probe, use, type, seconds < kQuickSeconds ? 2 : 1, times);
  }
}

}  // namespace oriel_internal
