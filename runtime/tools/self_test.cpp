#include "selftest/self_test.h"

#include <cstdio>
#include <iterator>

#include "api/api.h"
#include "exec/features.h"
#include "oriel/tools.h"
#include "plan/weight_layout.h"
#include "speed/tune.h"

namespace oriel_internal {
namespace {

// Weight types whose candidates are timed: the common ones.
constexpr WeightType kTimedTypes[] = {WeightType::kF16, WeightType::kQ8_0, WeightType::kQ4_0,
                                      WeightType::kQ4_K, WeightType::kQ6_K};

constexpr MatmulUse kTimedUses[] = {MatmulUse::kVector, MatmulUse::kChunk};

// Some drivers compile at the first dispatch, and a self-test plan has dozens of kernels.
constexpr uint32_t kTimeoutMs = 600000;

struct DeviceChoice {
  LoadOptions options;
  oriel_allocator allocator;
  mutable bool begun = false;  // the first executor discards earlier verdicts
};

Status makeForChecks(const void* context, const Plan& plan, bool baseline,
                     const ExecutorMemory& memory, Executor** executor) {
  const DeviceChoice& choice = *static_cast<const DeviceChoice*>(context);
  LoadOptions options = choice.options;
  if (baseline) {
    options.disabled_features = "all";
  }
  const ExecutorUse use = choice.begun ? ExecutorUse::kSelfTest : ExecutorUse::kSelfTestBegins;
  choice.begun = true;
  return createExecutor(options, use, plan, memory, choice.allocator, {}, logOf(options), nullptr,
                        executor);
}

Status makeForProbe(const void* context, const Plan& plan, const ExecutorMemory& memory,
                    Executor** executor) {
  const DeviceChoice& choice = *static_cast<const DeviceChoice*>(context);
  return createExecutor(choice.options, ExecutorUse::kProbe, plan, memory, choice.allocator, {},
                        logOf(choice.options), nullptr, executor);
}

Status timeCandidates(const DeviceChoice& choice, MatmulUse use, const Log& log,
                      oriel_candidate_fn on_candidate, void* user, TestProgress* progress,
                      oriel_self_test_result* result) {
  for (const WeightType type : kTimedTypes) {
    MatmulTimes times;
    ORIEL_TRY(tuneMatmul({makeForProbe, &choice}, use, fileTypeOf(type), true, choice.allocator,
                         log, &times));
    result->candidates_kept |= times.kept ? 1 : 0;
    for (uint32_t i = 0; i < times.count; ++i) {
      oriel_candidate candidate = {};
      candidate.struct_size = sizeof(candidate);
      std::snprintf(candidate.op, sizeof(candidate.op), "%s %s",
                    use == MatmulUse::kVector ? "matvec" : "matmul", weightTypeName(type));
      std::snprintf(candidate.name, sizeof(candidate.name), "%s", times.names[i]);
      candidate.microseconds = times.microseconds[i];
      candidate.chosen = i == times.chosen ? 1 : 0;
      candidate.standard = i == times.standard ? 1 : 0;
      on_candidate(&candidate, user);
    }
    ORIEL_TRY(progress->advance());
  }
  return kOk;
}

struct CheckCallback {
  oriel_check_fn on_check;
  void* user;

  static void handOn(const CheckReport& report, void* context) {
    const CheckCallback& self = *static_cast<const CheckCallback*>(context);
    oriel_check check = {};
    check.struct_size = sizeof(check);
    copyText(report.name, std::strlen(report.name), check.name);
    check.result = report.result == CheckResult::kPassed   ? ORIEL_CHECK_PASSED
                   : report.result == CheckResult::kFailed ? ORIEL_CHECK_FAILED
                                                           : ORIEL_CHECK_SKIPPED;
    check.error = report.error;
    check.limit = report.limit;
    copyText(report.reason, std::strlen(report.reason), check.reason);
    self.on_check(&check, self.user);
  }
};

void describeSummary(const SelfTestSummary& summary, oriel_self_test_result* result) {
  copyText(summary.device, std::strlen(summary.device), result->device);
  copyText(summary.driver, std::strlen(summary.driver), result->driver);
  copyText(summary.features, std::strlen(summary.features), result->features);
  result->passed = summary.passed;
  result->failed = summary.failed;
  result->skipped = summary.skipped;
}

Status selfTest(const LoadOptions& options, oriel_check_fn on_check,
                oriel_candidate_fn on_candidate, void* user, oriel_self_test_result* result) {
  const Log log = logOf(options);
  BudgetRequest checked;
  ORIEL_TRY(readRequest(options, log, &checked));
  if (options.device == DeviceKind::kNone) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the device name is empty: give a device");
  }
  DeviceChoice choice = {
      options, options.allocator != nullptr ? *options.allocator : defaultAllocator(), false};
  if (choice.options.device_timeout_ms == 0) {
    choice.options.device_timeout_ms = kTimeoutMs;
  }
  TestedDevice device;
  device.make = makeForChecks;
  device.context = &choice;
  writeFeatureNames(UINT32_MAX, result->feature_names, sizeof(result->feature_names));
  CheckCallback callback = {on_check, user};
  SelfTestSummary summary = {};
  const CheckSink sink = {on_check != nullptr ? CheckCallback::handOn : nullptr, &callback,
                          &summary};
  TestProgress progress = {{options.progress, options.progress_user}, kSelfTestParts};
  if (on_candidate != nullptr) {
    progress.parts += static_cast<uint32_t>(std::size(kTimedUses) * std::size(kTimedTypes));
  }
  ORIEL_TRY(runSelfTest(device, choice.allocator, log, sink, &progress));
  describeSummary(summary, result);
  if (on_candidate != nullptr) {
    for (const MatmulUse use : kTimedUses) {
      ORIEL_TRY(timeCandidates(choice, use, log, on_candidate, user, &progress, result));
    }
  }
  return kOk;
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_self_test(const oriel_options* given, oriel_check_fn on_check,
                             oriel_candidate_fn on_candidate, void* user,
                             oriel_self_test_result* out) {
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (const Status checked = checkResult(out, "oriel_self_test_result", logOf(options));
      !checked.ok()) {
    return checked.code();
  }
  oriel_self_test_result result = {};
  result.struct_size = sizeof(result);
  const Status status = selfTest(options, on_check, on_candidate, user, &result);
  if (status.ok()) {
    writeResult(result, out);
  }
  return status.code();
}
