// An executor in front of another, for tests that observe or change single calls.
#pragma once

#include "exec/executor.h"

namespace oriel_internal::test {

/// Forwards every call to `inner`, which it does not own.
class ForwardingExecutor : public Executor {
 public:
  explicit ForwardingExecutor(Executor* inner) : inner_(inner) {}

  Status beginWrite(uint64_t bytes, void** piece) override {
    return inner_->beginWrite(bytes, piece);
  }
  Status endWrite(const BufferRef& to, uint64_t offset, uint64_t bytes) override {
    return inner_->endWrite(to, offset, bytes);
  }
  Status finishLoad() override { return inner_->finishLoad(); }
  Status finishWrites() override { return inner_->finishWrites(); }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    return inner_->read(from, offset, bytes, piece);
  }

  void* step() override { return inner_->step(); }
  void* rowsOfStep(const BufferRef& place) override { return inner_->rowsOfStep(place); }
  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override { return inner_->run(what, stop); }
  bool runsAhead() const override { return inner_->runsAhead(); }
  void* aheadStep() override { return inner_->aheadStep(); }
  Status runAhead(bool* more) override { return inner_->runAhead(more); }
  Status dropAhead() override { return inner_->dropAhead(); }
  const TopTokens* top() const override { return inner_->top(); }
  Status logits(uint32_t output, const float** values) override {
    return inner_->logits(output, values);
  }
  Status keptLogits(uint32_t session, const float** values) override {
    return inner_->keptLogits(session, values);
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    return inner_->copy(pieces, count);
  }
  bool drain() override { return inner_->drain(); }
  Status forget() override { return inner_->forget(); }
  Status forget(const BufferRef* pieces, size_t count) override {
    return inner_->forget(pieces, count);
  }
  Status giveBack(ArenaSet arenas) override { return inner_->giveBack(arenas); }
  Status takeAgain(ArenaSet arenas) override { return inner_->takeAgain(arenas); }

  uint64_t allocatedBytes(ArenaKind kind) const override { return inner_->allocatedBytes(kind); }
  const char* deviceName() const override { return inner_->deviceName(); }
  const char* driverName() const override { return inner_->driverName(); }
  PipelineStats pipelineStats() const override { return inner_->pipelineStats(); }
  void describeFeatures(char* text, size_t capacity) const override {
    inner_->describeFeatures(text, capacity);
  }
  const char* pathName() const override { return inner_->pathName(); }

  MatmulTuning* matmulTuning() override { return inner_->matmulTuning(); }
  Status timeOps(StepList list, OpTime* times) override { return inner_->timeOps(list, times); }

 private:
  Executor* inner_;
};

}  // namespace oriel_internal::test
