// Tests of single kernels. On Vulkan each runs as on the device, and once without optional features and divided as on a
// GPU (more matmul variants: test_matmul.cpp). On the CPU it runs on the reference executor, and with every instruction
// set of this machine and several thread counts. Instantiated in golden/test_kernels.cpp.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "support/kernel_data.h"
#include "support/kernel_rig.h"

namespace oriel_internal::test {

enum class Path { kSubgroup, kShared, kReference, kSimd };

struct Variant {
  Path path;
  uint32_t simd_level = 0;
  uint32_t threads = 1;
};

inline std::string variantName(const Variant& variant) {
  switch (variant.path) {
    case Path::kSubgroup:
      return "subgroup";
    case Path::kShared:
      return "shared";
    case Path::kReference:
      return "reference";
    case Path::kSimd:
      break;
  }
  return "simd" + std::to_string(variant.simd_level) + "_threads" + std::to_string(variant.threads);
}
/// Without this gtest prints bytes of every test's variant at each program start.
inline void PrintTo(const Variant& variant, std::ostream* out) { *out << variantName(variant); }

class Kernels : public testing::TestWithParam<Variant> {
 protected:
  /// `threads`: of the CPU executor; 0: the variant's.
  void load(KernelRig* rig, uint32_t threads = 0) {
    if (GetParam().path == Path::kShared) {
      rig->options.disabled_features = "all";
    }
    rig->options.divide_as_gpu = GetParam().path == Path::kShared;
    rig->on_reference = GetParam().path == Path::kReference;
    rig->options.cpu_simd_level = GetParam().simd_level;
    rig->options.cpu_threads = threads != 0 ? threads : GetParam().threads;
    ASSERT_TRUE(rig->load().ok()) << rig->log.errors();
  }
  /// On the CPU cases alternate between one thread and several, with every instruction set.
  bool isOthersTurn(size_t number) const {
    if (GetParam().path == Path::kSimd) {
      return !allCases() && (number % 2 == 0) != (GetParam().threads == 1);
    }
    return test::isOthersTurn(number, GetParam().path == Path::kShared);
  }
  void run(KernelRig* rig, StepRun what) {
    rig->completeViews();
    ASSERT_TRUE(rig->executor->run(what).ok()) << rig->log.errors();
  }
};

/// Once per instruction set: for tests that choose the number of threads.
class SimdKernels : public Kernels {};

constexpr double kUntouched = static_cast<double>(KernelRig::kUntouched);

}  // namespace oriel_internal::test
