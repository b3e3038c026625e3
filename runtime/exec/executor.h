// The interface of a device: executors, their matmul candidates, and the executor of a lost device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "base/steps.h"
#include "model/adapters.h"
#include "plan/op.h"
#include "plan/plan.h"

namespace oriel_internal {

// The matmul candidates of a device that has several for a type. The fastest depends on the device and on the number of
// vectors; speed/probe.h measures it.

/// The number of vectors in a product: one when decoding and in a head with one output, or several in a chunk or with
/// several outputs.
enum class MatmulUse : uint8_t { kVector, kChunk };
constexpr uint32_t kMatmulUses = 2;

class MatmulTuning {
 public:
  /// The name of candidate `index`; null: this device has no such candidate for the type.
  virtual const char* candidateName(MatmulUse, WeightType, uint32_t index) const = 0;
  /// The candidate in use.
  virtual uint32_t choice(MatmulUse, WeightType) const = 0;
  /// The default candidate, without measurements.
  virtual uint32_t standard(MatmulUse, WeightType) const = 0;
  /// True if the candidate in use was measured, now or earlier.
  virtual bool isMeasured(MatmulUse, WeightType) const = 0;
  /// Selects the candidate.
  virtual Status take(MatmulUse, WeightType, uint32_t index) = 0;
  /// Saves the candidate in the cache folder for later executors; false: no folder, or an error.
  virtual bool keep(MatmulUse, WeightType, uint32_t index) = 0;

 protected:
  ~MatmulTuning() = default;
};

// A session's use of the model's adapters: their scales, and the first token of activated ones.

struct AdapterUse {
  static constexpr uint64_t kNever = UINT64_MAX;

  explicit AdapterUse(const Adapters& adapters) {
    for (uint32_t i = 0; i < adapters.count; ++i) {
      scale[i] = adapters.list[i].scale;
      from[i] = adapters.list[i].n_invocation != 0 ? kNever : 0;
    }
  }
  /// The factor for an adapter's products in token `t`.
  float at(const AdapterGate& gate, uint64_t t) const {
    return t >= from[gate.adapter] ? scale[gate.adapter] * gate.factor : 0.0f;
  }
  void markStale(uint64_t position) { stale_from = std::min(stale_from, position); }

  float scale[kMaxAdapters] = {};
  uint64_t from[kMaxAdapters] = {};  ///< first token that the adapter applies to
  uint64_t searched = 0;             ///< tokens searched for invocations
  uint64_t stale_from = kNever;      ///< tokens from here on were computed with other scales
  bool reads_again = false;
};

// Slots of a recurrent state in a step, in host memory.

struct StepState {
  const uint32_t* read = nullptr;  ///< null: the state is zeros
  uint32_t* written = nullptr;     ///< another slot
};

// The interface of a device that carries out a plan.

/// The op lists of one submission. The head is kHead if the step block asks for one output, kOutputs if it asks for
/// more.
enum class StepRun : uint8_t {
  kDecode,     ///< kDecode, then the head: logits of one token
  kChunk,      ///< kChunk, without a head
  kChunkHead,  ///< kChunk, then the head
  kHead,       ///< the head alone: logits of other tokens of the last kChunkHead
  kFill,       ///< the first `fill_ops` ops of kChunk, which fill the memories
  /// kTail, then the head: logits of token `tail` of the last kFill; the step block holds only that token
  kTail,
  /// kBatch, then kBatchHead: one token from each of several sessions, with the logits of all of them
  kBatch,
  kDraft,       ///< kDraft alone: a guess of one token, at Plan::draft_place of top()
  kChunkNorms,  ///< kChunk, then only the head's first op, on all tokens of the chunk: lastNorm()
};
constexpr bool hasHead(StepRun what) {
  return what != StepRun::kChunk && what != StepRun::kFill && what != StepRun::kChunkNorms &&
         what != StepRun::kDraft;
}
constexpr bool hasBody(StepRun what) { return what != StepRun::kHead; }
/// Requires hasBody(what).
constexpr StepList bodyOf(StepRun what) {
  return what == StepRun::kDecode  ? StepList::kDecode
         : what == StepRun::kTail  ? StepList::kTail
         : what == StepRun::kBatch ? StepList::kBatch
         : what == StepRun::kDraft ? StepList::kDraft
                                   : StepList::kChunk;
}
/// Number of ops in that list.
inline uint32_t bodyOps(const Plan& plan, StepRun what) {
  return what == StepRun::kFill ? plan.fill_ops : plan.n_ops[static_cast<uint32_t>(bodyOf(what))];
}

constexpr bool isHead(StepList list) {
  return list == StepList::kHead || list == StepList::kOutputs || list == StepList::kBatchHead;
}
/// Each token, or output, belongs to a different session and is computed as if it were alone.
constexpr bool isBatch(StepList list) {
  return list == StepList::kBatch || list == StepList::kBatchHead;
}
/// The head list of a step with `n_outputs` outputs. Requires hasHead(what).
constexpr StepList headOf(StepRun what, uint32_t n_outputs) {
  return what == StepRun::kBatch ? StepList::kBatchHead
         : n_outputs > 1         ? StepList::kOutputs
                                 : StepList::kHead;
}

/// Copies from.size_bytes bytes; both places have the same size.
struct CopyPiece {
  BufferRef from;
  BufferRef to;
};

/// Bytes of an arena that hold nothing between two steps.
struct ScratchPiece {
  ArenaKind arena = ArenaKind::kActivations;
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// Calls visit(ScratchPiece) for kActivations and kIo. With several sessions it leaves out the pieces kept per session.
template <typename Visit>
void forEachScratch(const Plan& plan, const Visit& visit) {
  const bool several = plan.sessionCount() > 1;
  const auto around = [&](ArenaKind arena, uint64_t bytes, const BufferRef& kept) {
    const uint64_t end = several ? kept.offset_bytes : bytes;
    visit(ScratchPiece{arena, 0, end});
    if (several) {
      visit(ScratchPiece{arena, kept.offset_bytes + kept.size_bytes, bytes});
    }
  };
  around(ArenaKind::kActivations, plan.activation_bytes, plan.kept_logits);
  around(ArenaKind::kIo, plan.io_bytes, plan.top);
}

/// The first op of a head. Its output has room for the rows of a chunk.
inline const Op& lastNorm(const Plan& plan) {
  return plan.ops[static_cast<uint32_t>(StepList::kHead)][0];
}

/// Compiled kernels of a device, and where they came from.
struct PipelineStats {
  uint32_t total = 0;
  uint32_t from_cache = 0;  ///< taken from the folder in ExecutorOptions, according to the driver
  bool known = false;       ///< the driver reported the origin of all kernels
  double ms = 0;            ///< from the start of the first compilation to the end of the last
};

/// Time of an op alone on the device.
struct OpTime {
  double ms;
  double expected_ms;   ///< from its launches, bytes and chains of loads; 0: no estimate
  uint32_t dispatches;  ///< 0: ops after it do its work
};

/// A set of arenas: one bit per kind.
using ArenaSet = uint32_t;
constexpr ArenaSet arenaBit(ArenaKind kind) { return 1u << static_cast<uint32_t>(kind); }
constexpr bool contains(ArenaSet arenas, ArenaKind kind) { return (arenas & arenaBit(kind)) != 0; }
constexpr ArenaSet kAllArenas = (1u << kArenaKinds) - 1;

class Executor;

/// Brings experts that stay in the file into their slots, in the middle of a step (plan/plan.h, ExpertsOnFile).
class ExpertFetch {
 public:
  virtual ~ExpertFetch() = default;
  /// Handles an op kFetchExperts in a step of `n_tokens` tokens. Reads `routes`, uploads experts into slots with the
  /// executor's beginWrite() and endWrite(), and writes the slot of every expert to `slots`. Runs on the thread that
  /// called run().
  virtual Status fetch(const FetchExpertsPush& push, uint32_t n_tokens, const uint32_t* routes,
                       uint32_t* slots, Executor* executor) = 0;
};

/// Carries out one plan on one device. Life: create (takes every arena of the plan and begins to compile) ->
/// beginWrite/endWrite for all uploads -> finishLoad (waits for pipelines and records everything) -> run,
/// run, run (allocates nothing). Not thread-safe. After ORIEL_ERROR_DEVICE or ORIEL_ERROR_TIMEOUT every
/// later call fails with the same status; destruction is still safe.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Sets the StopCheck for long calls that have no StopCheck argument: create, takeAgain, finishLoad. They check
  /// `stop` and return ORIEL_ERROR_CANCELLED. Null: these calls cannot be cancelled. Valid until the next call of
  /// stopBy().
  void stopBy(const StopCheck* stop) { load_stop_ = stop; }

  /// Returns a host-visible piece of the upload ring of `bytes` <= half of plan.upload. Fill it and pass it to endWrite
  /// before the next beginWrite.
  virtual Status beginWrite(uint64_t bytes, void** piece) = 0;
  /// Sends the piece to `offset_bytes` into `destination`. May return before it has arrived.
  virtual Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) = 0;
  virtual Status finishLoad() = 0;
  /// Waits until all uploads have arrived. Required before the next run() once loaded.
  virtual Status finishWrites() = 0;
  /// Waits for `bytes` <= half of plan.upload from `offset_bytes` into `source`; *piece is valid until the
  /// next call.
  virtual Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                      const void** piece) = 0;

  /// The step block (plan.step), for the host to fill before run().
  virtual void* step() = 0;
  /// The memory of plan.file_rows.place or plan.picture_rows, for the host to fill before run().
  virtual void* rowsOfStep(const BufferRef& place) = 0;
  /// Runs a step and waits for it, within the timeout. On success top() holds the result if the run has a head.
  /// `stop` is checked before each submission until the head has begun. On a stop the call waits for submitted work and
  /// returns ORIEL_ERROR_CANCELLED. Then logits and top() are unchanged, and the cache contents for the tokens of the
  /// step are undefined. The same holds after ORIEL_ERROR_IO, and after ORIEL_ERROR_OUT_OF_MEMORY, when the driver
  /// refused to begin.
  virtual Status run(StepRun what, const StopCheck& stop) = 0;
  Status run(StepRun what) { return run(what, StopCheck()); }
  /// The best tokens after the latest head: the only output that the host reads for every token. An array with one
  /// entry per session.
  virtual const TopTokens* top() const = 0;
  /// Waits for all logits of output `output` of the latest head, or for later writes to that row of plan.logits.
  /// *values is valid until the next call other than top(). The next step overwrites all rows except the first.
  virtual Status logits(uint32_t output, const float** values) = 0;
  /// The logits after the last token of a session. Steps of other sessions do not change them.
  virtual Status keptLogits(uint32_t /*session*/, const float** values) {
    return logits(0, values);
  }
  /// Copies within the plan's arenas and waits. Pieces must not overlap, and no copy may read the destination of
  /// another.
  virtual Status copy(const CopyPiece* /*pieces*/, size_t /*count*/) {
    return ORIEL_ERROR_UNSUPPORTED;
  }

  // In greedy decoding the device can continue with the best token without waiting for the host.

  /// True if running ahead is faster on this device.
  virtual bool runsAhead() const { return false; }
  /// The step block of the token after the current one, for the host to fill before runAhead(true).
  virtual void* aheadStep() { return nullptr; }
  /// Like run(kDecode). Uses the block step(), or aheadStep() if the previous call left *more true.
  ///
  /// If *more, also begins the next step, in aheadStep(), for the best token of this head. It begins all ops except the
  /// head and does not wait for them. Sets *more to false if a token takes too long to run ahead.
  /// On failure without device loss it has begun no further step: that would have overwritten the state after the last
  /// committed token.
  virtual Status runAhead(bool* more) {
    *more = false;
    return run(StepRun::kDecode);
  }
  /// Waits for the step that runAhead() began and discards it. logits() and top() then return the results
  /// of the previous head. The cache contents for the discarded token are undefined.
  virtual Status dropAhead() { return kOk; }

  /// After a failure, waits for pending work within the remaining time. False: the work does not end, and the device's
  /// memory will not be freed.
  virtual bool drain() { return true; }

  /// Overwrites all data of conversations with zeros: the cache, activations with logits, step blocks, the upload ring.
  /// On a lost device it clears only memory that the host can reach. Drops the step that runAhead() began.
  virtual Status forget() = 0;
  /// The same if only these pieces of the cache were written. Keeps top, and kept_logits if there are several sessions,
  /// unless they are among the pieces.
  virtual Status forget(const BufferRef* /*pieces*/, size_t /*count*/) { return forget(); }

  /// Frees the memory of these arenas for a while; kIo also frees compiled kernels. Other arenas keep their contents.
  /// Freeing an arena twice is allowed. No step may run until takeAgain() of all of them and finishLoad(). Meanwhile
  /// read(), beginWrite() and endWrite() need kIo and the arena that they name; forget() clears the arenas that are
  /// allocated.
  virtual Status giveBack(ArenaSet) { return ORIEL_ERROR_UNSUPPORTED; }
  /// Allocates freed arenas again, in any number of calls, kIo before kActivations. Then write the weights as after
  /// create and call finishLoad() last. A cache that was freed and the activations contain zeros, so logits and top()
  /// are lost. After a failure, free the arenas that were allocated with giveBack().
  virtual Status takeAgain(ArenaSet) { return ORIEL_ERROR_UNSUPPORTED; }

  /// Allocated bytes of an arena, including the driver's rounding; 0 if it is not allocated. Callable from any thread.
  virtual uint64_t allocatedBytes(ArenaKind kind) const = 0;
  virtual const char* deviceName() const = 0;
  virtual const char* driverName() const = 0;
  virtual PipelineStats pipelineStats() const { return {}; }
  /// Optional features of the device in use, as text for people; "" for none.
  virtual void describeFeatures(char* text, size_t /*capacity*/) const { text[0] = '\0'; }
  /// The method of summing over lanes, as in kernel names: "subgroup", "shared"; "" if there is only one.
  virtual const char* pathName() const { return ""; }

  /// Matmul candidates, after finishLoad(); null: there is only one.
  virtual MatmulTuning* matmulTuning() { return nullptr; }

  /// Runs the ops of a list one by one, each alone on the device, with the contents of step(). Writes the time of each
  /// op to `times`. The results equal the results of a step. ORIEL_ERROR_UNSUPPORTED if the device cannot measure time.
  virtual Status timeOps(StepList /*list*/, OpTime* /*times*/) { return ORIEL_ERROR_UNSUPPORTED; }

  /// Records the result of a test of some ops of a list that use each other's results.
  virtual void judge(StepList /*list*/, const Op* /*ops*/, uint32_t /*count*/, bool /*right*/) {}
  /// True if a kernel of these ops of a list multiplies in f16.
  virtual bool multipliesHalves(StepList /*list*/, const Op* /*ops*/, uint32_t /*count*/) const {
    return false;
  }
  /// Saves the recorded results for later executors.
  virtual void keepJudgement() {}
  /// Known faults of the device in use and the features that are off because of them, as text for people; "" for none.
  virtual void describeTrust(char* text, size_t /*capacity*/) const { text[0] = '\0'; }

 protected:
  StopCheck loadStop() const { return load_stop_ != nullptr ? *load_stop_ : StopCheck(); }

 private:
  const StopCheck* load_stop_ = nullptr;
};

/// The name of a candidate of matmulTuning(); null without tuning.
inline const char* candidateName(Executor* executor, MatmulUse use, WeightType type,
                                 uint32_t index) {
  const MatmulTuning* const tuning = executor->matmulTuning();
  return tuning != nullptr ? tuning->candidateName(use, type, index) : nullptr;
}

/// Host bytes that an executor may use, part of the plan's host bytes: one object, and a few handles per op. The values
/// do not depend on the device, so plans do not either.
constexpr uint64_t kExecutorObjectBytes = 27264;
constexpr uint64_t kExecutorBytesPerOp = 48;

/// Takes kExecutorObjectBytes and n_ops * kExecutorBytesPerOp from `host`, each in one piece. When measuring, the
/// pointers stay null.
struct ExecutorMemory {
  void* object = nullptr;
  void* per_op = nullptr;
};
ExecutorMemory takeExecutorMemory(const Plan& plan, Arena* host);

struct ExecutorOptions;
class PreparedWeights;
class Verdict;

/// Tests the kernels that a plan needs before the device is used.
class KernelTester {
 public:
  virtual ~KernelTester() = default;
  /// Creates executors with these options, passes each result to judge(), and destroys the executors.
  virtual Status test(const Plan& plan, const ExecutorOptions& options) = 0;
};

struct ExecutorOptions {
  uint32_t device_number = 0;  ///< 1 + index of a Vulkan device; 0: choose
  /// The caller has a fallback executor. An unusable device is then logged as information or a warning, and the call
  /// returns ORIEL_ERROR_NO_DEVICE.
  bool device_is_optional = false;
  /// Do not choose a Vulkan device that is the same processor: the fallback executor is faster.
  bool not_software = false;
  bool test_again = false;  ///< test kernels again that passed before
  /// This is an app start. It counts for features that are off after a driver crash for a number of starts.
  bool counts_start = false;
  /// Longest wait for a Vulkan device. Steps on the CPU have no limit.
  uint32_t timeout_ms = 60000;
  uint32_t cpu_threads = 0;        ///< for the CPU executor; 0: one per core, at most 8
  ExpertFetch* experts = nullptr;  ///< if the plan has experts on file
  PreparedWeights* prepared =
      nullptr;  ///< the weights, for executors in host memory; null: they are written
  const char* cache_dir = nullptr;
  const char* disabled_features = nullptr;  ///< as in LoadOptions
  const char* enabled_features = nullptr;   ///< as in LoadOptions
  /// Folder for facts about drivers, with marks while a driver is in use; null: none.
  const char* trust_dir = nullptr;
  KernelTester* tester = nullptr;  ///< null: no tests
  /// For executors of a test: judge() reads and writes only this verdict, of the device under test.
  Verdict* verdict = nullptr;
  // For the whole self-test: use kernels that failed a test, and forget earlier results.
  bool uses_wrong = false;
  bool forgets_wrong = false;
  uint32_t activation_bits = 16;  ///< bits of the rounded inputs of quantised weights: 16 or 8
  /// An executor of the same kind that outlives this one. This one uses its Vulkan device; both need the same caller.
  const Executor* beside = nullptr;
  const oriel_allocator* allocator = nullptr;
  const StopCheck* stop = nullptr;  ///< as in stopBy()
  Log log;
  // For tests only.
  uint32_t cpu_simd_level = UINT32_MAX;  ///< best SimdTarget allowed
  bool divide_as_gpu = false;  ///< true: software devices divide the work of kernels as a GPU does
  /// Hooks between the executor and its driver; the type is defined by the executor's platform.
  const void* driver_tap = nullptr;
};

/// The reference executor: plain C++ over host memory, one thread. Destroy with destroyExecutor.
Status createReferenceExecutor(const Plan& plan, const ExecutorOptions& options,
                               const ExecutorMemory& memory, Executor** executor);

/// Calls the destructor only. The arena owns the memory.
inline void destroyExecutor(Executor* executor) {
  if (executor != nullptr) {
    executor->~Executor();
  }
}

// The executor of a model between the loss of its device and the next device. It runs nothing.

/// Every call fails as on a lost device.
class NoExecutor : public Executor {
 public:
  Status beginWrite(uint64_t, void**) override { return ORIEL_ERROR_DEVICE; }
  Status endWrite(const BufferRef&, uint64_t, uint64_t) override { return ORIEL_ERROR_DEVICE; }
  Status finishLoad() override { return ORIEL_ERROR_DEVICE; }
  Status finishWrites() override { return ORIEL_ERROR_DEVICE; }
  Status read(const BufferRef&, uint64_t, uint64_t, const void**) override {
    return ORIEL_ERROR_DEVICE;
  }
  void* step() override { return nullptr; }
  void* rowsOfStep(const BufferRef&) override { return nullptr; }
  using Executor::run;
  Status run(StepRun, const StopCheck&) override { return ORIEL_ERROR_DEVICE; }
  const TopTokens* top() const override { return nullptr; }
  Status logits(uint32_t, const float**) override { return ORIEL_ERROR_DEVICE; }
  Status copy(const CopyPiece*, size_t) override { return ORIEL_ERROR_DEVICE; }
  Status forget() override { return ORIEL_ERROR_DEVICE; }
  Status giveBack(ArenaSet) override { return ORIEL_ERROR_DEVICE; }
  Status takeAgain(ArenaSet) override { return ORIEL_ERROR_DEVICE; }
  uint64_t allocatedBytes(ArenaKind) const override { return 0; }
  const char* deviceName() const override { return "none"; }
  const char* driverName() const override { return ""; }
};

}  // namespace oriel_internal
