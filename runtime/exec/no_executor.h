// The executor of a model between the loss of its device and the next device. It runs nothing.
#pragma once

#include "exec/executor.h"

namespace oriel_internal {

/// Every call fails as on a lost device.
class NoExecutor : public Executor {
 public:
  Status beginWrite(uint64_t, void**) override { return ORIEL_ERROR_DEVICE; }
  Status endWrite(const BufferRef&, uint64_t, uint64_t) override { return ORIEL_ERROR_DEVICE; }
  Status finishLoad() override { return ORIEL_ERROR_DEVICE; }
  Status finishWrites() override { return ORIEL_ERROR_DEVICE; }
  Status read(const BufferRef&, uint64_t, uint64_t, const void**) override {
    return ORIEL_ERROR_DEVICE;
  }
  void* step() override { return nullptr; }
  void* rowsOfStep(const BufferRef&) override { return nullptr; }
  using Executor::run;
  Status run(StepRun, const StopCheck&) override { return ORIEL_ERROR_DEVICE; }
  const TopTokens* top() const override { return nullptr; }
  Status logits(uint32_t, const float**) override { return ORIEL_ERROR_DEVICE; }
  Status copy(const CopyPiece*, size_t) override { return ORIEL_ERROR_DEVICE; }
  Status forget() override { return ORIEL_ERROR_DEVICE; }
  Status giveBack(ArenaSet) override { return ORIEL_ERROR_DEVICE; }
  Status takeAgain(ArenaSet) override { return ORIEL_ERROR_DEVICE; }
  uint64_t allocatedBytes(ArenaKind) const override { return 0; }
  const char* deviceName() const override { return "none"; }
  const char* driverName() const override { return ""; }
};

}  // namespace oriel_internal
