// One made-up model on a device, and the time of its steps.
#pragma once

#include "exec/executor.h"
#include "exec/session.h"
#include "speed/measure_speed.h"

namespace oriel_internal {

constexpr uint32_t kMaxProbeChunk = 64;

/// Which ops of a step are run.
enum class ProbeOps {
  kAll,
  kCache  ///< those that store and read keys and values; nothing they compute means anything
};

/// Everything that one probe holds; released with it. The executor sees an ordinary plan.
class Probe {
 public:
  Probe(const oriel_allocator& allocator, const Log& log) : allocator_(allocator), log_(log) {}
  ~Probe() { close(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// In place of what it held before. ORIEL_ERROR_UNSUPPORTED when no kernel takes this type of weights.
  Status open(const ProbeShape& shape, const CacheFormats& formats, uint32_t window, uint32_t chunk,
              const ExecutorMaker& maker, ProbeOps ops = ProbeOps::kAll);

  /// Usual seconds of a step of `tokens` tokens and their logits; the last sees `depth` tokens (at most
  /// the window). Of at least `fewest` runs, more where they are quick.
  Status read(const int32_t* ids, uint32_t count);
  Status time(uint32_t tokens, uint32_t depth, double* seconds, uint32_t fewest = 2);
  /// Usual seconds of computing logits alone, the caches warm. After a time().
  Status timeHead(double* seconds);
  /// The same behind a chunk of two tokens each time, so that the layers are what the caches hold.
  Status timeHeadAfterLayers(double* seconds);

  /// Gives its memory back.
  void close();

  Executor* executor() const { return executor_; }
  const char* device() const { return executor_->deviceName(); }
  const char* driver() const { return executor_->driverName(); }
  uint32_t ops(StepList list) const { return plan_.n_ops[static_cast<uint32_t>(list)]; }

 private:
  Status take(uint64_t bytes, void** block);

  oriel_allocator allocator_;
  Log log_;
  GgufFile file_;
  ModelDesc desc_;
  TensorIndex tensors_;
  Plan plan_;
  Executor* executor_ = nullptr;
  Session* session_ = nullptr;
  void* blocks_[2] = {};
  uint64_t block_bytes_[2] = {};
  uint32_t n_blocks_ = 0;
};

}  // namespace oriel_internal
