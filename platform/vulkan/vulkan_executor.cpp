#include "vulkan/vulkan_executor.h"

#include <algorithm>
#include <new>

#include "vulkan/executor_class.h"
#include "vulkan/kernels.h"
#include "vulkan/memory.h"

namespace oriel_internal {
namespace {

/// Extra time for a late device before its objects are abandoned.
constexpr double kLastGraceMs = 250;

}  // namespace

// ---- Life ----------------------------------------------------------------------------------------

Status VulkanExecutor::create() {
  const Log& log = options_.log;
  if (n_host_ops_ != 0 && options_.experts == nullptr) {
    return log.fail(ORIEL_ERROR_INTERNAL, "nobody fetches the experts: please report it");
  }
  if (options_.device_is_optional) {
    LenientLog lenient(log);
    ExecutorOptions options = options_;
    options.log = lenient.log();
    if (const Status status = takeDevice(options); !status.ok()) {
      return status.code() == ORIEL_ERROR_CANCELLED ? status : Status(ORIEL_ERROR_NO_DEVICE);
    }
  } else {
    ORIEL_TRY(takeDevice(options_));
  }
  options_.tester = nullptr;
  options_.stop = nullptr;  // from here on loadStop() is polled

  ORIEL_TRY(queue_.create(device_, arenas_, options_.timeout_ms, log));
  ORIEL_TRY(transfers_.create(device_, &queue_, arenas_, plan_, log));
  ORIEL_TRY(bindings_.createLayouts(device_, log));
  std::fill_n(paces_, 3, Pace(device_.caps.most_work));
  ORIEL_TRY(startPipelines());
  log.write(ORIEL_LOG_INFO, "running on %s (%s)", device_.caps.name, device_.caps.driver);
  return kOk;
}

VulkanExecutor::~VulkanExecutor() {
  pipelines_.join();
  // Even after an error, objects in use must not be destroyed.
  if (!queue_.drain(kLastGraceMs)) {
    device_.watch.end();  // it is late, but the process did not crash
    options_.log.write(ORIEL_LOG_INFO,
                       "the device never finished its work; its memory cannot be given back");
    return;  // leaves the driver loaded; it still holds the device
  }
  if (device_.device != VK_NULL_HANDLE) {
    queue_.release();
    releaseSets();
    pipelines_.release(device_);
    pipeline_cache_.release(device_);
    bindings_.release(device_);
    arenas_.release(device_, kAllArenas);
  }
  device_.destroy();
  device_.~VulkanDevice();
}

void VulkanExecutor::releaseSets() {
  for (uint32_t i = 0; i < n_handles_; ++i) {
    releaseTexelViews(device_, handles_[i].texels);
  }
  bindings_.releaseSets(device_);
}

// Clears conversation data, then releases the arenas and all objects that refer to them. Recorded commands keep stale
// references; they are recorded again before use.
Status VulkanExecutor::giveBack(ArenaSet arenas) {
  pipelines_.join();
  (void)dropAhead();
  for (uint32_t fence = 0; fence < kFences; ++fence) {
    ORIEL_TRY(queue_.settle(queue_.wait(fence)));
  }
  ORIEL_TRY(queue_.failed());
  ORIEL_TRY(transfers_.clear(arenas));
  releaseSets();
  if (contains(arenas, ArenaKind::kIo)) {
    pipelines_.release(device_);
    pipeline_cache_.release(device_);
  }
  arenas_.release(device_, arenas);
  keeps_cache_ = keeps_cache_ && !contains(arenas, ArenaKind::kCache);
  return kOk;
}

// As at first, the upload ring comes with pipeline compilation, in parallel with uploads.
Status VulkanExecutor::takeAgain(ArenaSet arenas) {
  ORIEL_TRY(queue_.failed());
  ORIEL_TRY(queue_.settle(arenas_.take(device_, plan_, arenas, options_.log)));
  return contains(arenas, ArenaKind::kIo) ? queue_.settle(startPipelines()) : kOk;
}

// ---- Steps ---------------------------------------------------------------------------------------

Status VulkanExecutor::run(StepRun what, const StopCheck& stop) {
  ORIEL_TRY(dropAhead());
  block_ = 0;
  const StepHeader& header = StepBlock(step()).header();
  const uint32_t batch = std::clamp(header.n_tokens, 1u, plan_.batch_rows);
  attention_groups_.write(step(), what == StepRun::kBatch ? batch : 1);
  const bool many = header.n_outputs > 1;
  return endRun(watchStep(what, many, stop));
}

// The watch ends after the first steps.
Status VulkanExecutor::watchStep(StepRun what, bool many, const StopCheck& stop) {
  device_.watch.enter(DriverPlace::kFirstSteps, features_in_use_);
  const Status status = submitStep(what, many, stop);
  device_.watch.leave(DriverPlace::kFirstSteps, features_in_use_);
  return status;
}

Status VulkanExecutor::endRun(Status status) {
  status = queue_.settle(status);
  for (uint32_t fence = kRunFence; fence < kFences && !status.ok(); ++fence) {
    (void)queue_.settle(queue_.wait(fence));  // the step block is in use until then
    if (queue_.inFlight(fence)) {
      queue_.fail(status);  // still in use: no further work is possible
    }
  }
  return status;
}

// Waits for a flight, if it has not ended, and adjusts the pace to its duration.
Status VulkanExecutor::land(uint32_t flight) {
  if (queue_.inFlight(kRunFence + flight)) {
    ORIEL_TRY(queue_.wait(kRunFence + flight));
    const double now_ms = nowMs();
    pace_->took(flights_[flight].work, now_ms - std::max(flights_[flight].sent_ms, landed_ms_));
    landed_ms_ = now_ms;
  }
  return kOk;
}

// Runs a host op in the middle of a step: all earlier work has ended, and the host's data arrives before the step
// continues. Steps without tokens skip it.
Status VulkanExecutor::runHostOp(const Op& op) {
  for (uint32_t flight = 0; flight < kFlights; ++flight) {
    ORIEL_TRY(land(flight));
  }
  const uint32_t n_tokens = StepBlock(step()).header().n_tokens;
  if (n_tokens == 0) {
    return kOk;
  }
  ORIEL_TRY(options_.experts->fetch(
      op.push.fetch_experts, n_tokens,
      reinterpret_cast<const uint32_t*>(arenas_.mapped(op.bindings[0])),
      reinterpret_cast<uint32_t*>(arenas_.mapped(op.bindings[kOpOut])), this));
  return finishWrites();
}

// Called after the fetch before a body piece. Returns that piece, or, if no expert got a slot, the piece that begins
// the next round of the same layer. Only work on experts in slots is between rounds (plan/experts.cpp).
uint32_t VulkanExecutor::afterIdleRound(const Op* ops, const StepCommands::Range& body,
                                        uint32_t piece) const {
  const Op& op = ops[steps_.piece(piece).host_op];
  const auto* const slots = reinterpret_cast<const uint32_t*>(arenas_.mapped(op.bindings[kOpOut]));
  const uint32_t count = op.bindings[kOpOut].size_bytes / sizeof(uint32_t);
  if (std::any_of(slots, slots + count, [](uint32_t slot) { return slot != kNoSlot; })) {
    return piece;
  }
  for (uint32_t later = piece + 1; later < body.end; ++later) {
    if (const uint32_t number = steps_.piece(later).host_op; number != StepPiece::kNoOp) {
      const bool same = ops[number].push.fetch_experts.layer == op.push.fetch_experts.layer;
      return same ? later : piece;
    }
  }
  return piece;
}

// Submits as many pieces at a time as the device can do in a short time.
Status VulkanExecutor::submitStep(StepRun what, bool many, const StopCheck& stop) {
  const StepCommands::Range body = steps_.body(what);
  const StepCommands::Range head = steps_.head(what, many);
  const uint32_t body_count = body.end - body.begin;
  const uint32_t count = body_count + head.end - head.begin;
  const StepLoad load = steps_.load(plan_, what, step());
  pace_ = &paces_[what == StepRun::kBatch                             ? 2
                  : hasBody(what) && bodyOf(what) == StepList::kChunk ? 1
                                                                      : 0];
  uint32_t flight = 0;
  for (uint32_t next = 0; next < count; flight = (flight + 1) % kFlights) {
    ORIEL_TRY(land(flight));
    const auto pieceAt = [&](uint32_t i) -> const StepPiece& {
      return steps_.piece(i < body_count ? body.begin + i : head.begin + i - body_count);
    };
    if (next < body_count && stop()) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (const uint32_t number = pieceAt(next).host_op; number != StepPiece::kNoOp) {
      const Op* const ops = plan_.ops[static_cast<uint32_t>(bodyOf(what))];
      ORIEL_TRY(runHostOp(ops[number]));
      const uint32_t later = afterIdleRound(ops, body, body.begin + next) - body.begin;
      if (later != next) {
        next = later;
        continue;
      }
    }
    VkCommandBuffer commands[StepCommands::kMaxPieces];
    uint32_t n = 0;
    if (next == 0) {
      commands[n++] = steps_.copy(what, many);
    }
    const uint32_t first = next;
    double work = 0;
    for (; next < count && n < StepCommands::kMaxPieces; ++next) {
      const StepPiece& piece = pieceAt(next);
      const double more = load.of(piece, next < body_count);
      if (next != first && (piece.host_op != StepPiece::kNoOp || work + more > pace_->work())) {
        break;
      }
      commands[n++] = piece.commands;
      work += more;
    }
    flights_[flight] = {work, nowMs()};
    const Status sent = queue_.submit(commands, n, kRunFence + flight);
    if (!sent.ok()) {  // half-updated logits allow no further work
      return first > body_count ? Status(ORIEL_ERROR_DEVICE) : sent;
    }
  }
  for (uint32_t i = 0; i < kFlights; ++i) {
    ORIEL_TRY(land((flight + i) % kFlights));
  }
  return kOk;
}

Status VulkanExecutor::runAhead(bool* more) {
  ORIEL_TRY(queue_.failed());
  if (!ahead_) {
    block_ = 0;
    attention_groups_.write(step(), 1);
  }
  const Status status = endRun(submitAhead(more));
  ahead_ = status.ok() && *more;
  return status;
}

// The device gets the whole next token except its head before it finishes this one. The head waits until the host
// has seen this result, so that the result can be kept. A token is then a single submission, and a cancelled call
// leaves at most two submissions in flight.
Status VulkanExecutor::submitAhead(bool* more) {
  const StepCommands::Range body = steps_.body(StepRun::kDecode);
  const StepCommands::Range head = steps_.head(StepRun::kDecode, false);
  const StepLoad load = steps_.load(plan_, StepRun::kDecode, stepBlock(block_));
  double work = 0;
  for (uint32_t i = body.begin; i < body.end; ++i) {
    work += load.of(steps_.piece(i), true);
  }
  for (uint32_t i = head.begin; i < head.end; ++i) {
    work += load.of(steps_.piece(i), false);
  }
  *more = *more && n_host_ops_ == 0 && work <= paces_[0].work();
  if (!*more && !ahead_) {
    return submitStep(StepRun::kDecode, false, StopCheck());
  }
  VkCommandBuffer commands[StepCommands::kMaxPieces];
  uint32_t n = 0;
  const auto add = [&](const StepCommands::Range& range) {
    for (uint32_t i = range.begin; i < range.end; ++i) {
      commands[n++] = steps_.piece(i).commands;
    }
  };
  if (!ahead_) {
    commands[n++] = steps_.copy(StepRun::kDecode, false);
    add(body);
  }
  add(head);
  const double sent_ms = nowMs();
  ORIEL_TRY(queue_.submit(commands, n, kRunFence));
  if (*more) {
    const uint32_t next = 1 - block_;
    attention_groups_.write(stepBlock(next), 1);
    n = 0;
    commands[n++] = steps_.copyAhead(next);
    add(body);
    ORIEL_TRY(queue_.submit(commands, n, kAheadFence + next));
    block_ = next;
  }
  ORIEL_TRY(queue_.wait(kRunFence));
  landed_ms_ = nowMs();
  // The start time on the device is known only if it was idle before; slowness is always known.
  if (const double ms = landed_ms_ - sent_ms; !ahead_ || ms > kSubmissionMs) {
    paces_[0].took(work, ms);
  }
  return kOk;
}

Status VulkanExecutor::dropAhead() {
  ORIEL_TRY(queue_.failed());
  if (!ahead_) {
    return kOk;
  }
  ahead_ = false;
  return endRun(queue_.wait(kAheadFence + block_));
}

// ---- Loading -------------------------------------------------------------------------------------

Status VulkanExecutor::finishLoad() {
  ORIEL_TRY(finishWrites());
  ORIEL_TRY(queue_.settle(finishPipelines()));
  ORIEL_TRY(queue_.settle(bindings_.createSets(device_, arenas_, plan_, options_.log, handles_)));
  ORIEL_TRY(queue_.settle(transfers_.record()));
  ORIEL_TRY(queue_.settle(recordSteps()));
  if (keeps_cache_) {
    return transfers_.clear(kAllArenas & ~arenaBit(ArenaKind::kCache));
  }
  ORIEL_TRY(transfers_.forget());
  keeps_cache_ = true;

  features_in_use_ = pipelines_.features();
  ORIEL_TRY(takeFirstSteps());
  if (options_.verdict == nullptr && !options_.uses_wrong) {  // a test is watched further
    device_.watch.end();
    device_.verdict.survived();
    device_.verdict.keep(device_.caps, options_.trust_dir);
  }
  std::fill_n(paces_, 3, Pace(device_.caps.most_work));
  return kOk;
}

// Some drivers compile at the first dispatch. The step block has 0 tokens and 0 outputs, so that little work is
// done; only state layers write, while no session has a state yet.
Status VulkanExecutor::takeFirstSteps() {
  ORIEL_TRY(run(StepRun::kDecode, loadStop()));
  ORIEL_TRY(run(StepRun::kChunk, loadStop()));
  if (plan_.output_rows > 1) {
    ORIEL_TRY(endRun(watchStep(StepRun::kHead, true, StopCheck())));
  }
  ORIEL_TRY(plan_.n_ops[static_cast<uint32_t>(StepList::kDraft)] != 0
                ? run(StepRun::kDraft, StopCheck())
                : kOk);
  return plan_.batch_rows > 1 ? run(StepRun::kBatch, StopCheck()) : kOk;
}

Status VulkanExecutor::take(MatmulUse use, WeightType type, uint32_t index) {
  ORIEL_TRY(queue_.failed());
  if (choices_.candidate(use, type, index) == nullptr) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "no such kernel candidate: please report it");
  }
  choices_.take(use, type, index);
  ORIEL_TRY(queue_.settle(choosePipelines()));
  // The upload ring is idle.
  Workspace workspace = ringWorkspace();
  ORIEL_TRY(queue_.settle(pipelines_.start(device_, bindings_.layout(), pipeline_cache_.handle(),
                                           DriverPlace::kCompile, &workspace, options_.log)));
  ORIEL_TRY(queue_.settle(pipelines_.finish(&workspace, options_.log, StopCheck())));
  return queue_.settle(recordSteps());
}

Status VulkanExecutor::timeOps(StepList list, OpTime* op_times) {
  ORIEL_TRY(queue_.failed());
  const uint32_t n_ops = plan_.n_ops[static_cast<uint32_t>(list)];
  if (device_.caps.timestamp_ns == 0 || n_host_ops_ != 0) {
    return options_.log.fail(ORIEL_ERROR_UNSUPPORTED, "%s: its ops cannot be timed: %s",
                             device_.caps.name,
                             n_host_ops_ != 0 ? "give enough memory to hold all experts"
                                              : "its driver has no timestamps");
  }
  ORIEL_TRY(dropAhead());
  attention_groups_.write(step(), 1);
  VkQueryPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = n_ops + 1;
  VkQueryPool times = VK_NULL_HANDLE;
  ORIEL_TRY(checkMade(device_.api.vkCreateQueryPool(device_.device, &info, nullptr, &times), &times,
                      "make timestamps", options_.log));
  const Status status = queue_.settle(timeOps(list, times, op_times));
  expectOps(list, op_times);
  if (queue_.drain()) {
    device_.api.vkDestroyQueryPool(device_.device, times, nullptr);
  }
  return status;
}

Status VulkanExecutor::timeOps(StepList list, VkQueryPool times, OpTime* op_times) {
  VkCommandBuffer commands[2] = {steps_.copy(StepRun::kChunk, /*many=*/true), VK_NULL_HANDLE};
  ORIEL_TRY(steps_.recordTimed(stepSource(), list, times, &commands[1]));
  ORIEL_TRY(queue_.submit(commands, 2, kRunFence));
  ORIEL_TRY(queue_.wait(kRunFence));
  const uint64_t mask = UINT64_MAX >> (64 - device_.caps.timestamp_bits);
  uint64_t before = 0;
  for (uint32_t i = 0; i <= plan_.n_ops[static_cast<uint32_t>(list)]; ++i) {
    uint64_t tick = 0;
    ORIEL_TRY(
        checkVk(device_.api.vkGetQueryPoolResults(device_.device, times, i, 1, sizeof(tick), &tick,
                                                  sizeof(tick), VK_QUERY_RESULT_64_BIT),
                "read timestamps", options_.log));
    if (i != 0) {
      op_times[i - 1].ms =
          static_cast<double>((tick - before) & mask) * device_.caps.timestamp_ns / 1e6;
    }
    before = tick;
  }
  return kOk;
}

void VulkanExecutor::expectOps(StepList list, OpTime* op_times) {
  const StepLoad load = StepCommands::load(
      plan_, list == StepList::kChunk ? StepRun::kChunk : StepRun::kDecode, step());
  const uint32_t l = static_cast<uint32_t>(list);
  const OpHandles* const handles = handles_ + plan_.opsBefore(l);  // without host ops
  for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
    const Op& op = plan_.ops[l][i];
    const Op* const maker = makerOf(plan_.ops[l], i, handles + i);
    Kernel kernel;
    const bool runs =
        handles[i].parts != 0 && chooseKernel(op, maker, kernelRows(plan_, list), device_.caps,
                                              choices_, options_.log, &kernel)
                                     .ok();
    op_times[i].dispatches = handles[i].parts + (handles[i].staging != kNoPipeline ? 1 : 0);
    op_times[i].expected_ms =
        runs ? expectedUs(op, maker, kernel, plan_.rows(list), load.seen[opWork(op, 1).view],
                          costsOf(device_.caps)) /
                   1000
             : 0;
  }
}

// Adds the pipelines of every op, to be compiled later.
Status VulkanExecutor::choosePipelines() {
  OpHandles* handles = handles_;
  for (uint32_t l = 0; l < kStepLists; ++l) {
    const double piece_work = pieceWork(plan_, static_cast<StepList>(l), device_.caps);
    for (uint32_t i = 0; i < plan_.n_ops[l]; ++i) {
      if (!isDoneByHost(plan_.ops[l][i])) {
        ORIEL_TRY(choosePipelines(static_cast<StepList>(l), i, piece_work, handles++));
      }
    }
  }
  return kOk;
}

Status VulkanExecutor::choosePipelines(StepList list, uint32_t index, double piece_work,
                                       OpHandles* handles) {
  const Op* const ops = plan_.ops[static_cast<uint32_t>(list)];
  const Op& op = ops[index];
  const uint32_t rows = plan_.rows(list);
  if (isMadeByReaders(plan_, list, index, device_.caps)) {
    handles->parts = 0;
    handles->staging = kNoPipeline;
    return kOk;
  }
  Kernel kernel;
  ORIEL_TRY(chooseKernel(op, makerOf(ops, index, handles), kernelRows(plan_, list), device_.caps,
                         choices_, options_.log, &kernel));
  uint32_t pipeline = 0;
  ORIEL_TRY(pipelines_.add(kernel, options_.log, &pipeline));
  handles->pipeline = static_cast<uint16_t>(pipeline);
  attention_groups_.add(list, op, rows, kernel);
  uint32_t offset = 0;
  const bool indirect = attention_groups_.covers(list, op, rows, kernel, &offset);
  handles->parts = indirect ? 1 : partsOf(op, rows, kernel, piece_work);
  handles->staging = kNoPipeline;
  if (kernel.staging == Staging::kNone) {
    return kOk;
  }
  if (4ull * kStagedUnitWords * op.push.matmul.units * rows >
      op.bindings[kMatmulStaged].size_bytes) {
    return options_.log.fail(ORIEL_ERROR_INTERNAL, "a row longer than planned: please report it");
  }
  ORIEL_TRY(chooseStaging(op, rows, kernel.staging, device_.caps, options_.log, &kernel));
  ORIEL_TRY(pipelines_.add(kernel, options_.log, &pipeline));
  handles->staging = static_cast<uint16_t>(pipeline);
  return kOk;
}

Status VulkanExecutor::startPipelines() {
  ORIEL_TRY(choosePipelines());
  // The upload ring is not in use yet.
  Workspace workspace = ringWorkspace();
  ORIEL_TRY(pipeline_cache_.create(device_, options_.cache_dir, &workspace, options_.log));
  return pipelines_.start(device_, bindings_.layout(), pipeline_cache_.handle(),
                          pipeline_cache_.place(), &workspace, options_.log);
}

Status VulkanExecutor::finishPipelines() {
  Workspace workspace = ringWorkspace();  // uploads have ended
  ORIEL_TRY(pipelines_.finish(&workspace, options_.log, loadStop()));
  const PipelineStats stats = pipelines_.stats();
  options_.log.write(ORIEL_LOG_DEBUG, "%u pipelines (%s) in %.0f ms, %s%u of them from the cache",
                     stats.total, subgroupPath(device_.caps), stats.ms,
                     stats.known ? "" : "at least ", stats.from_cache);
  // The upload ring is idle by now.
  pipeline_cache_.save(device_, arenas_.mapped(plan_.upload), plan_.upload.size_bytes,
                       options_.log);
  return kOk;
}

// ---- Recording -----------------------------------------------------------------------------------

StepCommands::Source VulkanExecutor::stepSource() {
  return {&plan_,    &device_,           &arenas_,           &pipelines_,
          &choices_, &attention_groups_, bindings_.layout(), queue_.pool(),
          handles_,  more_pieces_,       n_host_ops_,        options_.log};
}

Status VulkanExecutor::recordSteps() { return steps_.record(stepSource()); }

static_assert(sizeof(VulkanExecutor) <= kExecutorObjectBytes, "the executor's planned size");

uint32_t forgetVulkanDevices(const char* dir, uint32_t* left) { return forgetVerdicts(dir, left); }

Status createVulkanExecutor(const Plan& plan, const ExecutorOptions& options,
                            const ExecutorMemory& memory, Executor** executor) {
  *executor = nullptr;
  VulkanExecutor* vulkan = new (memory.object) VulkanExecutor(plan, options, memory.per_op);
  if (const Status status = vulkan->create(); !status.ok()) {
    vulkan->~VulkanExecutor();
    return status;
  }
  *executor = vulkan;
  return kOk;
}

}  // namespace oriel_internal
