#include "selftest/self_test.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

#include "base/arena.h"

namespace oriel_internal {
namespace {

/// Memory from the app's allocator for the lifetime of this object.
class Block {
 public:
  Block(const oriel_allocator& allocator, size_t bytes)
      : allocator_(allocator), bytes_(bytes), data_(allocateZeroed(allocator, bytes)) {}
  ~Block() {
    if (data_ != nullptr) {
      allocator_.release(data_, bytes_, allocator_.user);
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() const { return data_; }

 private:
  const oriel_allocator& allocator_;
  size_t bytes_;
  void* data_;
};

/// An executor with its memory.
class Tested {
 public:
  Tested(const CheckPlan& plan, const oriel_allocator& allocator)
      : block_(allocator, bytesFor(plan)), arena_(block_.data(), bytesFor(plan)) {
    if (block_.data() != nullptr) {
      memory = takeExecutorMemory(plan.plan(), &arena_);
    }
  }
  ~Tested() { destroyExecutor(executor); }
  Tested(const Tested&) = delete;
  Tested& operator=(const Tested&) = delete;
  bool good() const { return block_.data() != nullptr; }

  ExecutorMemory memory;
  Executor* executor = nullptr;

 private:
  static size_t bytesFor(const CheckPlan& plan) {
    Arena measuring;
    (void)takeExecutorMemory(plan.plan(), &measuring);
    return static_cast<size_t>(measuring.used());
  }
  Block block_;
  Arena arena_;
};

Status outOfMemory(const Log& log) {
  return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                  "the system refused memory for the self-test: close other programs");
}

double difference(const Check& check, const void* got, const void* want) {
  const uint64_t count = check.out.size_bytes / 4;
  if (check.words) {
    const uint32_t* const a = static_cast<const uint32_t*>(got);
    const uint32_t* const b = static_cast<const uint32_t*>(want);
    uint64_t differ = 0;
    for (uint64_t i = 0; i < count; ++i) {
      differ += a[i] != b[i] ? 1 : 0;
    }
    return static_cast<double>(differ) / static_cast<double>(count);
  }
  const float* const a = static_cast<const float*>(got);
  const float* const b = static_cast<const float*>(want);
  double squares = 0;
  double most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double error = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(error <= std::numeric_limits<double>::max())) {
      return std::numeric_limits<double>::infinity();  // NaN on either side
    }
    most = std::fmax(most, error);
    squares += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  // All zeros mean that the reference failed, so nothing may pass.
  return squares > 0 ? most / std::sqrt(squares / static_cast<double>(count))
                     : std::numeric_limits<double>::infinity();
}

/// For kernels that multiply in f16: weights and inputs are rounded to 11 bits. One wrong product in a check exceeds
/// this ten times.
constexpr double kHalfLimit = 4e-3;
constexpr const char* kHalfCandidate = "half";
constexpr const char* kMatrixCandidate = "matrix";
constexpr const char* kDiffers =
    "it differs from the same work in plain code: update the driver, or choose another device";

bool beginsWith(const char* text, const char* beginning) {
  return std::strncmp(text, beginning, std::strlen(beginning)) == 0;
}

// Looks at Q8_0 only: a device that has kernels of a kind for any type has them for Q8_0, too.
bool hasCandidate(Executor& executor, MatmulUse use, const char* beginning) {
  for (uint32_t i = 0; candidateName(&executor, use, WeightType::kQ8_0, i) != nullptr; ++i) {
    if (beginsWith(candidateName(&executor, use, WeightType::kQ8_0, i), beginning)) {
      return true;
    }
  }
  return false;
}

// False if the device does not have the variant.
bool nameOf(const Check& check, Executor& executor, char (&name)[64]) {
  constexpr const char* kNorm = "rms_norm";
  if (beginsWith(check.name, kNorm) && executor.pathName()[0] != '\0') {
    std::snprintf(name, sizeof(name), "rms_norm_%s%s", executor.pathName(),
                  check.name + std::strlen(kNorm));
    return true;
  }
  std::snprintf(name, sizeof(name), "%s", check.name);
  if (check.candidate == 0) {
    return true;
  }
  const MatmulUse use = check.list == StepList::kChunk ? MatmulUse::kChunk : MatmulUse::kVector;
  const MatmulTuning* const tuning = executor.matmulTuning();
  if (tuning == nullptr) {
    return check.candidate == 1;
  }
  const uint32_t index = check.candidate == kChosenCandidate ? tuning->choice(use, check.weights)
                                                             : check.candidate - 1u;
  const char* const candidate = tuning->candidateName(use, check.weights, index);
  if (candidate == nullptr) {
    return check.candidate == 1;
  }
  std::snprintf(name, sizeof(name), "%s (%s)", check.name, candidate);
  return true;
}

void describe(Executor& executor, bool subgroups, const CheckSink& sink) {
  SelfTestSummary* const result = sink.summary;
  std::snprintf(result->device, sizeof(result->device), "%s", executor.deviceName());
  std::snprintf(result->driver, sizeof(result->driver), "%s", executor.driverName());
  executor.describeFeatures(result->features, sizeof(result->features));
  if (executor.pathName()[0] == '\0') {
    return;  // nothing is optional
  }
  if (!subgroups) {
    sink.report({"rms_norm_subgroup", CheckResult::kSkipped, 0, 0,
                 "the device has no subgroup arithmetic, or it is turned off"});
  }
  if (!hasCandidate(executor, MatmulUse::kVector, "dot")) {
    sink.report({"matmul with dot products", CheckResult::kSkipped, 0, 0,
                 "the device has no packed integer dot product, or it is turned off"});
  }
  if (!hasCandidate(executor, MatmulUse::kChunk, kHalfCandidate)) {
    sink.report({"matmul in half precision", CheckResult::kSkipped, 0, 0,
                 "the device has no arithmetic in f16, or it is turned off"});
  }
  if (!hasCandidate(executor, MatmulUse::kChunk, kMatrixCandidate)) {
    sink.report(
        {"matmul with matrix units", CheckResult::kSkipped, 0, 0,
         "the device has none that multiply f16, they are turned off, or this build has no kernels "
         "for them"});
  }
}

// Runs the plan on the device and on the reference.
Status compare(const TestedDevice& device, const CheckPlan& plan, bool baseline, bool describes,
               const oriel_allocator& allocator, const Log& log, const StopCheck& stop,
               const CheckSink& sink, bool* subgroups) {
  Tested tested(plan, allocator);
  Tested reference(plan, allocator);
  if (!tested.good() || !reference.good()) {
    return outOfMemory(log);
  }
  ExecutorOptions options;
  options.allocator = &allocator;
  options.log = log;
  ORIEL_TRY(createReferenceExecutor(plan.plan(), options, reference.memory, &reference.executor));
  ORIEL_TRY(device.make(device.context, plan.plan(), baseline, tested.memory, &tested.executor));
  Executor& executor = *tested.executor;
  ORIEL_TRY(plan.load(reference.executor));
  ORIEL_TRY(stop.check());
  ORIEL_TRY(plan.load(&executor));
  ORIEL_TRY(stop.check());
  ORIEL_TRY(plan.run(reference.executor));
  ORIEL_TRY(stop.check());
  ORIEL_TRY(plan.run(&executor));
  *subgroups = std::strcmp(executor.pathName(), "subgroup") == 0;
  if (describes) {
    describe(executor, *subgroups, sink);
  }
  for (uint32_t i = 0; i < plan.checks(); ++i) {
    ORIEL_TRY(stop.check());
    const Check& check = plan.check(i);
    char name[64];
    if (!nameOf(check, executor, name)) {
      continue;
    }
    // Heads are tested with several outputs.
    const StepList list = check.list == StepList::kHead ? StepList::kOutputs : check.list;
    const Op* const ops = plan.plan().ops[static_cast<uint32_t>(list)] + check.first_op;
    const bool in_halves = !check.words && executor.multipliesHalves(list, ops, check.n_ops);
    const double limit = in_halves ? kHalfLimit : check.limit;
    const void* got = nullptr;
    const void* want = nullptr;
    ORIEL_TRY(executor.read(check.out, 0, check.out.size_bytes, &got));
    ORIEL_TRY(reference.executor->read(check.out, 0, check.out.size_bytes, &want));
    const double error = difference(check, got, want);
    const bool right = error <= limit;
    sink.report({name, right ? CheckResult::kPassed : CheckResult::kFailed, error, limit,
                 right ? "" : kDiffers});
    executor.judge(list, ops, check.n_ops, right);
  }
  executor.keepJudgement();
  return kOk;
}

Status runChecks(const TestedDevice& device, CheckPart part, const oriel_allocator& allocator,
                 const Log& log, const CheckSink& sink, bool* subgroups) {
  const Block block(allocator, sizeof(CheckPlan));
  if (block.data() == nullptr) {
    return outOfMemory(log);
  }
  return compare(device, *new (block.data()) CheckPlan(part), part == CheckPart::kNorms,
                 part == CheckPart::kSmallOps, allocator, log, StopCheck(), sink, subgroups);
}

uint64_t arenaBytes(const Plan& plan) {
  return plan.weights_bytes + plan.cache_bytes + plan.activation_bytes + plan.io_bytes;
}

}  // namespace

void CheckSink::report(const CheckReport& report) const {
  uint32_t* const count = report.result == CheckResult::kPassed   ? &summary->passed
                          : report.result == CheckResult::kFailed ? &summary->failed
                                                                  : &summary->skipped;
  ++*count;
  if (on_check != nullptr) {
    on_check(report, user);
  }
}

Status TestProgress::advance() {
  ++done;
  return app.callback != nullptr && app.callback(done, parts, app.user) != 0
             ? Status(ORIEL_ERROR_CANCELLED)
             : kOk;
}

Status runSelfTest(const TestedDevice& device, const oriel_allocator& allocator, const Log& log,
                   const CheckSink& sink, TestProgress* progress) {
  bool subgroups = false;
  for (const CheckPart part : kAllKernels) {
    ORIEL_TRY(runChecks(device, part, allocator, log, sink, &subgroups));
    ORIEL_TRY(progress->advance());
  }
  if (subgroups) {  // the variants that use shared memory
    ORIEL_TRY(runChecks(device, CheckPart::kNorms, allocator, log, sink, &subgroups));
  }
  return progress->advance();
}

Status testKernelsOf(const Plan& plan, const TestedDevice& device, const oriel_allocator& allocator,
                     const Log& log, const StopCheck& stop) {
  const Block block(allocator, sizeof(CheckPlan));
  if (block.data() == nullptr) {
    return ORIEL_ERROR_OUT_OF_MEMORY;
  }
  const CheckPlan& checks = *new (block.data()) CheckPlan(KernelsOf(plan));
  // The device's part and the reference's part are allocated at the same time.
  if (2 * arenaBytes(checks.plan()) + sizeof(CheckPlan) > arenaBytes(plan)) {
    log.write(ORIEL_LOG_DEBUG, "no room within the plan to test kernels");
    return ORIEL_ERROR_MEMORY_BUDGET;
  }
  SelfTestSummary summary = {};
  bool subgroups = false;
  return compare(device, checks, false, false, allocator, log, stop, {nullptr, nullptr, &summary},
                 &subgroups);
}

}  // namespace oriel_internal
