// A rig on the Vulkan executor for tests of its calls, failures and resources. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "support/kernel_api_tap.h"
#include "support/kernel_rig.h"

namespace oriel_internal::test {

class VulkanExecutor : public testing::Test {
 protected:
  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the target is not Vulkan";
    }
  }
};

/// A rig that copies a vector in all three lists to the output `out`, and uses every arena.
struct Copier {
  static constexpr uint32_t kCols = kUnit;

  Copier() : rig(2) {
    std::vector<float> identity(kCols * kCols, 0.0f);
    for (uint32_t i = 0; i < kCols; ++i) {
      identity[i * kCols + i] = 1.0f;
    }
    MatmulPush push = {};
    push.rows = kCols;
    push.units = 1;
    const PackedMatrix matrix = floatMatrix(kCols, kCols, identity);
    push.group_words = matrix.geometry.groupWords();
    push.side_word = matrix.geometry.sideWord();
    push.in_stride = kCols;
    push.out_stride = kCols;
    const BufferRef weights = rig.input(matrix.words);
    const BufferRef in = rig.input(std::vector<float>(2 * kCols, 5.0f));
    rig.cache(64);
    out = rig.output(2 * kCols);
    for (const StepList list : {StepList::kDecode, StepList::kChunk, StepList::kHead}) {
      rig.add(list, OpKind::kMatmul, push, {weights, out, in});
    }
  }
  bool copies(StepRun what = StepRun::kDecode) {
    rig.clearOutputs();
    rig.header().n_tokens = 1;
    return rig.executor->run(what).ok() && rig.floats(out)[kCols - 1] == 5.0f;
  }

  KernelRig rig;
  BufferRef out;
};

}  // namespace oriel_internal::test
