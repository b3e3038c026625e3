// A picture encoder on the device of the tests, or on the reference executor.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/captured_log.h"
#include "support/encoding.h"
#include "support/target.h"
#include "vision/picture_encoder.h"
#ifdef ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#ifdef ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal::test {

class PictureRig {
 public:
  PictureRig(const std::string& path, uint32_t image_rows, bool on_reference = false)
      : PictureRig(readBytes(path), image_rows, on_reference) {}
  PictureRig(std::vector<uint8_t> file, uint32_t image_rows, bool on_reference = false)
      : bytes_(std::move(file)) {
    status = make(image_rows, on_reference);
  }
  ~PictureRig() { destroyExecutor(executor_); }
  PictureRig(const PictureRig&) = delete;
  PictureRig& operator=(const PictureRig&) = delete;

  Status encode(const Picture& picture, const PictureLayout& layout, std::vector<float>* rows,
                const StopCheck& stop = {}) {
    rows->assign(size_t{layout.rowCount()} * encoder.width(), 0.0f);
    return encoder.encode(picture, layout, log.log(), stop, rows->data());
  }

  CapturedLog log;
  VisionDesc desc;
  PictureEncoder encoder;
  Status status;

 private:
  Status make(uint32_t image_rows, bool on_reference) {
    ORIEL_TRY(file_.open(bytes_.data(), bytes_.size(), log.log()));
    ORIEL_TRY(readVisionDesc(file_, log.log(), &desc));
    Arena measure;
    PictureEncoder measured;
    ORIEL_TRY(measured.create(file_, desc, image_rows, log.log(), &measure));
    host_.assign(measure.used() / sizeof(Piece), {});
    Arena arena(host_.data(), measure.used());
    ORIEL_TRY(encoder.create(file_, desc, image_rows, log.log(), &arena));
    EXPECT_FALSE(arena.exhausted());
    EXPECT_EQ(measure.used(), arena.used());
    EXPECT_EQ(measured.deviceBytes(), encoder.deviceBytes());
    options_.log = log.log();
    options_.allocator = &defaultAllocator();
    options_.disabled_features = disabledFeatures();
    options_.timeout_ms = deviceTimeoutMs();
    ORIEL_TRY(createExecutorOn(on_reference));
    uint64_t taken = 0;
    for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
      taken += executor_->allocatedBytes(static_cast<ArenaKind>(kind));
    }
    EXPECT_EQ(encoder.deviceBytes(), taken);
    ORIEL_TRY(executor_->finishLoad());
    encoder.use(executor_);
    return kOk;
  }

  Status createExecutorOn(bool on_reference) {
    const Plan& plan = encoder.plan();
#ifdef ORIEL_VULKAN
    if (onVulkan() && !on_reference) {
      return createVulkanExecutor(plan, options_, encoder.memory(), &executor_);
    }
#endif
#ifdef ORIEL_CPU_SIMD
    if (!on_reference && cpuExecutorUsable()) {
      return createCpuExecutor(plan, options_, encoder.memory(), &executor_);
    }
#endif
    return createReferenceExecutor(plan, options_, encoder.memory(), &executor_);
  }

  struct alignas(Arena::kAlignment) Piece {
    uint8_t bytes[Arena::kAlignment];
  };
  std::vector<uint8_t> bytes_;
  GgufFile file_;
  std::vector<Piece> host_;
  ExecutorOptions options_;
  Executor* executor_ = nullptr;
};

/// |got - want| / |want|; infinite for other sizes.
inline double relativeError(const std::vector<float>& want, const std::vector<float>& got) {
  double error = want.size() == got.size() ? 0 : HUGE_VAL;
  double norm = 0;
  for (size_t i = 0; i < std::min(want.size(), got.size()); ++i) {
    error += std::pow(double{want[i]} - double{got[i]}, 2);
    norm += std::pow(double{want[i]}, 2);
  }
  return std::sqrt(error / norm);
}

}  // namespace oriel_internal::test
