// What a device must be able to do to carry out a plan.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "base/stop_check.h"
#include "exec/matmul_tuning.h"
#include "plan/plan.h"

namespace oriel_internal {

/// What one submission runs. The head is kHead where the step block asks for one output, kOutputs where it asks
/// for more.
enum class StepRun : uint8_t {
  kDecode,     ///< kDecode, then the head: logits of one token
  kChunk,      ///< kChunk, without a head
  kChunkHead,  ///< kChunk, then the head
  kHead,       ///< the head alone: logits of other tokens of the last kChunkHead
  kFill,       ///< those ops of kChunk that fill the memories
  kTail,  ///< kTail, then the head: logits of token `tail` of the last kFill, which the step block has alone
  kBatch,  ///< kBatch, then kBatchHead: a token of each of several sessions, all of whose logits are wanted
  kDraft,  ///< kDraft alone: a guess of one token, at Plan::draft_place of top()
  kChunkNorms,  ///< kChunk, then the head's first op alone, of as many tokens as the chunk has: lastNorm()
};
constexpr bool hasHead(StepRun what) {
  return what != StepRun::kChunk && what != StepRun::kFill && what != StepRun::kChunkNorms &&
         what != StepRun::kDraft;
}
constexpr bool hasBody(StepRun what) { return what != StepRun::kHead; }
/// Meaningful where there is a body.
constexpr StepList bodyOf(StepRun what) {
  return what == StepRun::kDecode  ? StepList::kDecode
         : what == StepRun::kTail  ? StepList::kTail
         : what == StepRun::kBatch ? StepList::kBatch
         : what == StepRun::kDraft ? StepList::kDraft
                                   : StepList::kChunk;
}
/// How many ops of that list.
inline uint32_t bodyOps(const Plan& plan, StepRun what) {
  return what == StepRun::kFill ? plan.fill_ops : plan.n_ops[static_cast<uint32_t>(bodyOf(what))];
}

constexpr bool isHead(StepList list) {
  return list == StepList::kHead || list == StepList::kOutputs || list == StepList::kBatchHead;
}
/// Its tokens, or outputs, are each of a session of its own, and done as if they were alone.
constexpr bool isBatch(StepList list) {
  return list == StepList::kBatch || list == StepList::kBatchHead;
}
/// The head of a run that has one, of a step with so many outputs.
constexpr StepList headOf(StepRun what, uint32_t n_outputs) {
  return what == StepRun::kBatch ? StepList::kBatchHead
         : n_outputs > 1         ? StepList::kOutputs
                                 : StepList::kHead;
}

/// Bytes to copy from one place to another as long.
struct CopyPiece {
  BufferRef from;
  BufferRef to;
};

/// Bytes of an arena that are nobody's between two steps.
struct ScratchPiece {
  ArenaKind arena = ArenaKind::kActivations;
  uint64_t begin = 0;
  uint64_t end = 0;
};
/// visit(ScratchPiece) for the activations and what the host sees, but for what is kept of each of several sessions.
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

/// The op that a head begins with. Its output has room for the rows of a chunk.
inline const Op& lastNorm(const Plan& plan) {
  return plan.ops[static_cast<uint32_t>(StepList::kHead)][0];
}

/// Compiled kernels of a device, and where they came from.
struct PipelineStats {
  uint32_t total = 0;
  uint32_t from_cache = 0;  ///< of the folder that ExecutorOptions names, by the driver's word
  bool known = false;       ///< the driver gave its word on all of them
  double ms = 0;            ///< from the first being begun until all were there
};

/// Arenas by kind, a bit each.
using ArenaSet = uint32_t;
constexpr ArenaSet arenaBit(ArenaKind kind) { return 1u << static_cast<uint32_t>(kind); }
constexpr bool contains(ArenaSet arenas, ArenaKind kind) { return (arenas & arenaBit(kind)) != 0; }
constexpr ArenaSet kAllArenas = (1u << kArenaKinds) - 1;

class Executor;

/// Brings experts that stay in the file into their slots, in the middle of a step (plan/plan.h, ExpertsOnFile).
class ExpertFetch {
 public:
  virtual ~ExpertFetch() = default;
  /// For an op kFetchExperts of a step of `n_tokens` tokens: reads `routes`, puts experts into slots by way of the
  /// executor's beginWrite() and endWrite(), and says in `slots` where every expert is. Called on the thread that
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

  /// Until the next call, what takes long without a StopCheck of its own (create, takeAgain, finishLoad) asks `stop` and
  /// ends with ORIEL_ERROR_CANCELLED. Null: nobody asks.
  void stopBy(const StopCheck* stop) { load_stop_ = stop; }

  /// A host-visible piece of the upload ring of `bytes` <= half of plan.upload, to be filled and handed
  /// to endWrite before the next beginWrite.
  virtual Status beginWrite(uint64_t bytes, void** piece) = 0;
  /// Sends the piece to `offset_bytes` into `destination`. May return before it has arrived.
  virtual Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) = 0;
  virtual Status finishLoad() = 0;
  /// Waits until everything that was sent has arrived; needed before the next run() once loaded.
  virtual Status finishWrites() = 0;
  /// Waits for `bytes` <= half of plan.upload from `offset_bytes` into `source`; *piece is valid until the
  /// next call.
  virtual Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
                      const void** piece) = 0;

  /// The step block (plan.step), for the host to fill before run().
  virtual void* step() = 0;
  /// plan.file_rows.place, likewise, where the plan has such a table.
  virtual void* fileRows() = 0;
  /// Runs and waits (bounded). On success top() holds the result where the run has a head. `stop` is asked
  /// before each piece of the work that is begun, until it says yes or the head has begun: then what was
  /// begun is waited for and ORIEL_ERROR_CANCELLED returned. Logits and top() are then what they were; what the cache
  /// holds for the tokens of the step is undefined. The same holds after ORIEL_ERROR_OUT_OF_MEMORY, where the driver
  /// refused to begin, and ORIEL_ERROR_IO.
  virtual Status run(StepRun what, const StopCheck& stop) = 0;
  Status run(StepRun what) { return run(what, StopCheck()); }
  /// The best tokens after the latest head: what the host reads of every token.
  /// An array: of each session.
  virtual const TopTokens* top() const = 0;
  /// Waits for all logits of output `output` of the latest head, or what was written to that row of plan.logits
  /// since; *values is valid until the next call but top(). Rows but the first are lost when a step begins.
  virtual Status logits(uint32_t output, const float** values) = 0;
  /// Likewise for those after the last token of a session, which other sessions' steps leave alone.
  virtual Status keptLogits(uint32_t /*session*/, const float** values) {
    return logits(0, values);
  }
  /// Copies within the plan's arenas; pieces do not overlap, and no copy reads what another writes. Waits for them.
  virtual Status copy(const CopyPiece* /*pieces*/, size_t /*count*/) {
    return ORIEL_ERROR_UNSUPPORTED;
  }

  // Greedy decoding need not wait for the host between tokens: the device goes on with the best token itself.

  /// Whether that gains anything here.
  virtual bool runsAhead() const { return false; }
  /// The step block of the token after the one that runs, for the host to fill before runAhead(true).
  virtual void* aheadStep() { return nullptr; }
  /// As run(kDecode), of the step in step() or, where the call before left *more true, of the one that was in
  /// aheadStep(). If *more, also begins what follows: everything but the head of the step in aheadStep(), for
  /// the token that this head finds to be the best. Does not wait for that. *more becomes false where a token
  /// is too long for it. Where it fails on a device that is not lost
  /// it has begun nothing: that would have written over the state after the last committed token.
  virtual Status runAhead(bool* more) {
    *more = false;
    return run(StepRun::kDecode);
  }
  /// Waits for what runAhead() began, which then counts for nothing: logits and top() are those of the head
  /// before; what the cache holds for the token is undefined.
  virtual Status dropAhead() { return kOk; }

  /// Waits until nothing is under way, for what is left of the time that a failure leaves. False: it does not end, and
  /// the device's memory will not be given back.
  virtual bool drain() { return true; }

  /// Overwrites with zeros all that a conversation left: the cache, activations with logits, step blocks, the
  /// upload ring. Of a device that was lost only what the host can reach. What runAhead() began is dropped.
  virtual Status forget() = 0;
  /// The same where nothing of the cache but these pieces was written. What the plan keeps for sessions besides caches
  /// (kept_logits where there are several, top) stays, unless it is among the pieces.
  virtual Status forget(const BufferRef* /*pieces*/, size_t /*count*/) { return forget(); }

  /// Gives the memory of these arenas back for a while, with kIo also compiled kernels. What the others hold stays, and
  /// what is given back already is no error. Until takeAgain() of all of them and finishLoad() no step may run; read(),
  /// beginWrite() and endWrite() want kIo and the arena that they name, forget() takes what is there.
  virtual Status giveBack(ArenaSet) { return ORIEL_ERROR_UNSUPPORTED; }
  /// Takes them again, in any number of calls, with kIo before kActivations; then weights are written as after create,
  /// and finishLoad() comes last. Zeros are in the cache then if it was given back, and in the activations; so
  /// logits and top() are gone. On failure what was taken is there: give it back.
  virtual Status takeAgain(ArenaSet) { return ORIEL_ERROR_UNSUPPORTED; }

  /// Really allocated bytes of an arena: the plan's number and what the driver rounds up, or 0. May be asked from any
  /// thread.
  virtual uint64_t allocatedBytes(ArenaKind kind) const = 0;
  virtual const char* deviceName() const = 0;
  virtual const char* driverName() const = 0;
  virtual PipelineStats pipelineStats() const { return {}; }
  /// Optional features of the device in use, for people: "" for none.
  virtual void describeFeatures(char* text, size_t /*capacity*/) const { text[0] = '\0'; }
  /// How lanes are summed up, as kernels are named: "subgroup", "shared"; "" where there is but one way.
  virtual const char* pathName() const { return ""; }

  /// Its ways to multiply, after finishLoad(); null: it has one.
  virtual MatmulTuning* matmulTuning() { return nullptr; }

  /// Runs the ops of a list one after the other, each alone on the device, with what step() holds: `ms` gets the time of
  /// each. Results are those of a step. ORIEL_ERROR_UNSUPPORTED where the device cannot say.
  virtual Status timeOps(StepList /*list*/, double* /*ms*/) { return ORIEL_ERROR_UNSUPPORTED; }

  /// What a test found of some ops of a list that work on each other's results.
  virtual void judge(StepList /*list*/, const Op* /*ops*/, uint32_t /*count*/, bool /*right*/) {}
  /// Keeps what was judged for executors to come.
  virtual void keepJudgement() {}
  /// What is known against the device in use, and what is left off for it, for people: "" for nothing.
  virtual void describeTrust(char* text, size_t /*capacity*/) const { text[0] = '\0'; }

 protected:
  StopCheck loadStop() const { return load_stop_ != nullptr ? *load_stop_ : StopCheck(); }

 private:
  const StopCheck* load_stop_ = nullptr;
};

/// A candidate of matmulTuning(); null where there is none.
inline const char* candidateName(Executor* executor, MatmulUse use, WeightType type,
                                 uint32_t index) {
  const MatmulTuning* const tuning = executor->matmulTuning();
  return tuning != nullptr ? tuning->candidateName(use, type, index) : nullptr;
}

/// Host bytes an executor may use for itself, part of the plan's host bytes: one object, and a few
/// handles per op. Device-independent, so that a plan is, too.
constexpr uint64_t kExecutorObjectBytes = 27264;
constexpr uint64_t kExecutorBytesPerOp = 48;

/// Takes kExecutorObjectBytes and n_ops * kExecutorBytesPerOp from `host` in one piece each; does the
/// same when measuring (then *executor stays null).
struct ExecutorMemory {
  void* object = nullptr;
  void* per_op = nullptr;
};
ExecutorMemory takeExecutorMemory(const Plan& plan, Arena* host);

struct ExecutorOptions;
class Verdict;

/// Tests the kernels of a device that a plan wants to use, before it is used.
class KernelTester {
 public:
  virtual ~KernelTester() = default;
  /// Makes executors with these options, gives every one judge() of what it found, and destroys them.
  virtual Status test(const Plan& plan, const ExecutorOptions& options) = 0;
};

struct ExecutorOptions {
  uint32_t device_number = 0;  ///< 1 + index of a Vulkan device; 0: choose
  /// The caller has another executor in reserve: that no device is usable, or one cannot be set up, is
  /// information or a warning and ORIEL_ERROR_NO_DEVICE.
  bool device_is_optional = false;
  /// That one is faster than a Vulkan device that is the same processor: those are not chosen.
  bool not_software = false;
  bool test_again = false;  ///< even what was found to be right is tested
  /// A start of the app: of those that go without what a driver died of one is over.
  bool counts_start = false;
  /// Longest wait for a Vulkan device. A step on the CPU takes the time it takes.
  uint32_t timeout_ms = 60000;
  uint32_t cpu_threads = 0;        ///< of the CPU executor; 0: one per core, at most 8
  ExpertFetch* experts = nullptr;  ///< where the plan has experts on file
  const char* cache_dir = nullptr;
  const char* disabled_features = nullptr;  ///< as in LoadOptions
  const char* enabled_features = nullptr;   ///< likewise
  /// Where what was found out about drivers is kept, and marked while they are at work; null: nowhere.
  const char* trust_dir = nullptr;
  KernelTester* tester = nullptr;  ///< null: nothing is tested
  /// For executors of a test: of the device under test, read and written by judge(), and nothing else is asked about it.
  Verdict* verdict = nullptr;
  // For the whole self-test: kernels that were found wrong are used all the same, and what was found before is forgotten.
  bool uses_wrong = false;
  bool forgets_wrong = false;
  uint32_t activation_bits =
      16;  ///< likewise: what inputs of quantised weights are rounded to; 16 or 8
  const oriel_allocator* allocator = nullptr;
  const StopCheck* stop = nullptr;  ///< as in stopBy()
  Log log;
  // For tests only.
  uint32_t cpu_simd_level = UINT32_MAX;  ///< the best SimdTarget that may be used
  bool divide_as_gpu =
      false;  ///< true: kernels divide their work as on a GPU, on software devices too
  /// What stands between the executor and its driver: of the type that the executor's platform defines.
  const void* driver_tap = nullptr;
};

/// The reference executor: plain C++ over host memory, one thread. Destroy with destroyExecutor.
Status createReferenceExecutor(const Plan& plan, const ExecutorOptions& options,
                               const ExecutorMemory& memory, Executor** executor);

/// Calls the destructor; the memory itself belongs to the arena.
inline void destroyExecutor(Executor* executor) {
  if (executor != nullptr) {
    executor->~Executor();
  }
}

}  // namespace oriel_internal
