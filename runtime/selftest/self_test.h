// Runs every kernel of a device beside the reference executor, and says which differ.
#pragma once

#include <iterator>

#include "exec/load_weights.h"
#include "selftest/check_plan.h"

namespace oriel {

/// Makes executors on the device under test and on the reference, for any plan.
struct TestedDevice {
  /// `baseline`: without any optional feature.
  Status (*make)(const void* context, const Plan& plan, bool baseline, const ExecutorMemory& memory,
                 Executor** executor) = nullptr;
  const void* context = nullptr;
};

/// Counts checks and passes them on.
struct CheckSink {
  oriel_check_fn on_check = nullptr;
  void* user = nullptr;
  oriel_self_test_result* counts = nullptr;

  void report(const char* name, oriel_check_result result, double error, double limit,
              const char* reason) const;
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

/// Fills in the device of sink.counts, too.
Status runSelfTest(const TestedDevice& device, const oriel_allocator& allocator, const Log& log,
                   const CheckSink& sink, TestProgress* progress);

}  // namespace oriel
