// Runs every kernel of a device beside the reference executor, and says which differ.
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

/// One kernel variant on the device beside plain code. The texts last as long as the call that is given it.
struct CheckReport {
  const char* name;
  CheckResult result;
  double error;  ///< largest difference, relative to the root mean square of what should be
  double limit;
  const char* reason;  ///< why it failed or was skipped; ""
};

/// What was tested, and how it went.
struct SelfTestSummary {
  char device[256];
  char driver[256];
  char features[256];  ///< optional features in use, as Executor::describeFeatures names them
  uint32_t passed, failed, skipped;
};

/// Counts checks and passes them on.
struct CheckSink {
  void (*on_check)(const CheckReport& report, void* user) = nullptr;
  void* user = nullptr;
  SelfTestSummary* summary = nullptr;

  void report(const CheckReport& report) const;
};

/// Tells the app of each part that is done, and asks whether to go on.
struct TestProgress {
  LoadProgress app;
  uint32_t parts = 0;
  uint32_t done = 0;

  /// ORIEL_ERROR_CANCELLED when the app asks to stop.
  Status advance();
};

/// The parts that runSelfTest does.
constexpr uint32_t kSelfTestParts = std::size(kAllKernels) + 1;

/// Fills in the device of sink.summary, too.
Status runSelfTest(const TestedDevice& device, const oriel_allocator& allocator, const Log& log,
                   const CheckSink& sink, TestProgress* progress);

/// The short test of a load: only the kernels that `plan` has a use for, in memory of `allocator` and of the device that
/// is less than the plan's own and given back with the call. The executor gets judge() of what was found. Fails, without
/// an error line for that, where nothing could be tested; ORIEL_ERROR_DEVICE or ORIEL_ERROR_TIMEOUT: the device failed.
/// ORIEL_ERROR_CANCELLED: `stop` said so.
Status testKernelsOf(const Plan& plan, const TestedDevice& device, const oriel_allocator& allocator,
                     const Log& log, const StopCheck& stop);

}  // namespace oriel_internal
