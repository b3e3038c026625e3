// Tests of single kernels: on Vulkan each runs with and without subgroup arithmetic. Instantiated in
// golden/test_kernels.cpp.
#pragma once

#include <string>
#include <vector>

#include "support/kernel_data.h"
#include "support/kernel_rig.h"

namespace oriel::test {

enum class Path { kSubgroup, kShared, kReference };

class Kernels : public testing::TestWithParam<Path> {
 protected:
  void load(KernelRig* rig) {
    rig->options.allow_subgroups = GetParam() != Path::kShared;
    ASSERT_TRUE(rig->load().ok()) << rig->log.errors();
  }
  void run(KernelRig* rig, StepRun what) {
    ASSERT_TRUE(rig->executor->run(what).ok()) << rig->log.errors();
  }
};

constexpr double kUntouched = static_cast<double>(KernelRig::kUntouched);

}  // namespace oriel::test
