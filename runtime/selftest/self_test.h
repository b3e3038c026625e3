// Runs every kernel of a device and of the reference executor, and reports the differences.
#pragma once

#include <iterator>

#include "exec/load_weights.h"
#include "selftest/check_plan.h"

namespace oriel_internal {

/// Makes executors on the device under test and on the reference, for any plan.
struct TestedDevice {
  /// `baseline`: without any optional feature.
  Status (*make)(const void* context, const Plan& plan, bool baseline, const ExecutorMemory& memory,
                 Executor** executor) = nullptr;
  const void* context = nullptr;
};

enum class CheckResult : uint8_t { kPassed, kFailed, kSkipped };

/// One kernel variant compared with the reference. Its texts are valid during the callback.
struct CheckReport {
  const char* name;
  CheckResult result;
  double error;  ///< largest difference, relative to the root mean square of the reference
  double limit;
  const char* reason;  ///< why it failed or was skipped; "" otherwise
};

/// The tested device and the results.
struct SelfTestSummary {
  char device[256];
  char driver[256];
  char features[256];  ///< optional features in use, named as by Executor::describeFeatures
  uint32_t passed, failed, skipped;
};

/// Counts checks and passes them on.
struct CheckSink {
  void (*on_check)(const CheckReport& report, void* user) = nullptr;
  void* user = nullptr;
  SelfTestSummary* summary = nullptr;

  void report(const CheckReport& report) const;
};

/// Reports each finished part to the app, which may cancel.
struct TestProgress {
  LoadProgress app;
  uint32_t parts = 0;
  uint32_t done = 0;

  /// ORIEL_ERROR_CANCELLED if the app asks to stop.
  Status advance();
};

/// Number of parts in runSelfTest.
constexpr uint32_t kSelfTestParts = std::size(kAllKernels) + 1;

/// Also fills in the device in sink.summary.
Status runSelfTest(const TestedDevice& device, const oriel_allocator& allocator, const Log& log,
                   const CheckSink& sink, TestProgress* progress);

/// The short test of a load: only the kernels that `plan` uses. Takes less memory than the plan, from `allocator` and
/// the device, during the call. Calls judge() of the executor with the result. Fails without an error line if nothing
/// could be tested. ORIEL_ERROR_DEVICE or ORIEL_ERROR_TIMEOUT: the device failed. ORIEL_ERROR_CANCELLED: `stop` asked to
/// stop.
Status testKernelsOf(const Plan& plan, const TestedDevice& device, const oriel_allocator& allocator,
                     const Log& log, const StopCheck& stop);

}  // namespace oriel_internal
