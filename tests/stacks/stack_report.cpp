// Runs the device tests with stack measurement of threads and calls: neither may exceed the limits in oriel.h and of
// the threads. With ORIEL_STACKS_ALL every public function must be called.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/painted_stacks.h"

namespace oriel_internal::test::stack_report {
namespace {

constexpr size_t kKib = 1024;
constexpr size_t kOfCalls = 256 * kKib;       // oriel.h
constexpr size_t kOfWorkers = 256 * kKib;     // platform/cpu/pool.cpp
constexpr size_t kOfCompilers = 8192 * kKib;  // platform/vulkan/pipelines.h
// Leaves an eighth for an app's signal handlers, and for frames of other compilers.
constexpr size_t mostOf(size_t bytes) { return bytes - bytes / 8; }

class Stacks : public testing::Environment {
 public:
  void TearDown() override {
    const bool all = std::getenv("ORIEL_STACKS_ALL") != nullptr;
    for (size_t i = 0; i < calls_measured_count; ++i) {
      const size_t bytes = calls_measured[i].deepest_bytes;
      std::printf("stack of %-40s %6.1f KiB\n", calls_measured[i].function,
                  static_cast<double>(bytes) / kKib);
      EXPECT_LE(bytes, mostOf(kOfCalls)) << calls_measured[i].function;
      EXPECT_TRUE(bytes > 0 || !all) << calls_measured[i].function << " is not called";
    }
    const StackUse worker = deepestThread(kOfWorkers, 2 * kOfWorkers);
    const StackUse compiler = deepestThread(kOfCompilers, SIZE_MAX);
    std::printf("stack of a worker %.1f KiB, of a thread with 8 MiB %.1f KiB\n",
                static_cast<double>(worker.used_bytes) / kKib,
                static_cast<double>(compiler.used_bytes) / kKib);
    EXPECT_LE(worker.used_bytes, mostOf(kOfWorkers));
    EXPECT_LE(compiler.used_bytes, mostOf(kOfCompilers));
  }
};

[[maybe_unused]] testing::Environment* const stacks = testing::AddGlobalTestEnvironment(new Stacks);

}  // namespace
}  // namespace oriel_internal::test::stack_report
