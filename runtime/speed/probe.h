// Timing of a device: synthetic layers that represent a model's, and the choice of kernels.
#pragma once

#include "exec/executor.h"
#include "exec/session.h"
#include "speed/measure_speed.h"

namespace oriel_internal {

// Synthetic layers that represent a model's.

/// The model's shape with every matrix in this type, and a limited output matrix. Widths are rounded up to the type's
/// blocks, and halved if one layer takes more than `layer_bytes`. False for an unknown type.
bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape);

/// Number of its layers that fit in `bytes`; at least one.
uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes);

// A synthetic model on a device, and the time of its steps.

constexpr uint32_t kMaxProbeChunk = 64;

/// The ops to run in a step.
enum class ProbeOps {
  kAll,
  kCache  ///< only the ops that store and read keys and values; their results are meaningless
};

/// Owns a probe's memory. The executor sees an ordinary plan.
class Probe {
 public:
  Probe(const oriel_allocator& allocator, const Log& log) : allocator_(allocator), log_(log) {}
  ~Probe() { close(); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// Replaces the previous contents. ORIEL_ERROR_UNSUPPORTED if this weight type has no kernel.
  Status open(const ProbeShape& shape, const CacheFormats& formats, uint32_t window, uint32_t chunk,
              const ExecutorMaker& maker, ProbeOps ops = ProbeOps::kAll);

  /// Typical seconds of a step of `tokens` tokens with logits; the last token sees `depth` tokens (at most the window).
  /// At least `fewest` runs, more if they are short.
  Status read(const int32_t* ids, uint32_t count);
  Status time(uint32_t tokens, uint32_t depth, double* seconds, uint32_t fewest = 2);
  /// Typical seconds of the logits alone, with warm caches. Call after time().
  Status timeHead(double* seconds);
  /// The same after a chunk of two tokens each time, so that the caches hold the layers.
  Status timeHeadAfterLayers(double* seconds);

  /// Frees its memory.
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

// Finds a device's fastest matmul variant by timing.

constexpr uint32_t kMostMatmulCandidates = 8;

/// Tokens in the step that times the candidates for a use.
constexpr uint32_t tunedTokens(MatmulUse use) { return use == MatmulUse::kVector ? 1 : 32; }

struct MatmulTimes {
  char names[kMostMatmulCandidates][64];
  double microseconds[kMostMatmulCandidates];  ///< of a step of a small synthetic model
  uint32_t count;  ///< 0: the device has one variant only, or it was measured before
  uint32_t chosen;
  uint32_t standard;  ///< used without a measurement
  bool kept;          ///< in the cache folder
};

/// Times the candidates for matrices of `tensor_type` (GGUF's number) and stores the fastest, unless that was done
/// before and `again` is false. ORIEL_ERROR_UNSUPPORTED without a kernel for the type.
Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times);

}  // namespace oriel_internal
