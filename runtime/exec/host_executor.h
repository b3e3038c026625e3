// Executors in host memory, and reference ops of latent attention.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "exec/executor.h"
#include "exec/load_weights.h"
#include "kv/cache_layout.h"
#include "plan/plan.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

// Ops of latent attention in plain scalar C++, for the reference executor.

struct ReferenceLatentAppend {
  LatentAppendPush push;
  KvFormat format;
  StepBlock step;
  const float* heads;
  float* queries;
  uint32_t* memory;
  const float* vectors;
};
/// For token `t`.
void referenceLatentAppend(const ReferenceLatentAppend& task, uint32_t t);

struct ReferenceLatentAttention {
  LatentAttentionPush push;
  KvFormat format;
  StepBlock step;
  const float* queries;
  float* out;
  uint32_t* memory;
};
/// For one head of token `t` over one split.
void referenceLatentAttention(const ReferenceLatentAttention& task, uint32_t t, uint32_t head,
                              uint32_t split);

// The reference executor's recurrent states: scalar, token by token, as shaders/shared/layout.h defines them.

/// Rows of tokens; `in` and `out` point to the first token's.
void referenceStateInputs(const StateInputsPush& push, uint32_t n_tokens, const float* in,
                          const StepState& state, const float* taps, const float* gates,
                          float* out);
void referenceStateScan(const StateScanPush& push, uint32_t n_tokens, const float* in,
                        const StepState& state, const float* gates, float* out);
/// Applies GatedNormPush::gate to a value.
double gateOf(uint32_t gate, double x);
void referenceGatedNorm(const GatedNormPush& push, uint32_t n_tokens, const float* in,
                        const float* gates, const float* weight, float* out);

/// Rows of a state's matrices in one slot, with their format.
class StateMatrix {
 public:
  /// `rows`: for all heads together.
  StateMatrix(StateFormat format, uint32_t rows, uint32_t key_dim)
      : format_(format), rows_(rows), key_dim_(key_dim) {}
  void load(const uint32_t* slot, uint32_t row, float* values) const;
  void store(uint32_t* slot, uint32_t row, const float* values) const;

 private:
  StateFormat format_;
  uint32_t rows_;
  uint32_t key_dim_;
};

// Reads rows of a weight slice for the reference executor.

constexpr uint32_t kTokenBlock = 8;  ///< tokens per unpacking of the weights

/// A weight slice, unpacked one unit of a row at a time.
struct WeightRows {
  WeightType type;
  const uint32_t* words;
  uint32_t group_words;
  uint32_t side_word;

  /// The values, bit-exact as in the file's format.
  void unpack(uint32_t row, uint32_t unit, float (&out)[kUnit]) const;
  /// Products of one row with n <= kTokenBlock vectors. Each unit is unpacked once for all of them.
  void dots(uint32_t row, uint32_t units, const float* x, uint32_t stride, uint32_t n,
            float* products) const;
};

// Optional features of Vulkan devices, with their names in LoadOptions.disabled_features. The baseline needs none of
// them.

enum class VulkanFeature : uint32_t {
  kSubgroup,    ///< arithmetic over the lanes of a subgroup
  kIntegerDot,  ///< dot products of four packed bytes
  kTexels,      ///< texel buffers that cover the longest binding
  kRunAhead,    ///< not a CPU: continuing with the best token before the host has seen it is faster
  kCooperativeMatrix,  ///< vulkan/device_caps.h
  kFloat16,            ///< half-precision arithmetic; matrix units also need it
  kFusedOps = 9,       ///< products that make their input themselves (vulkan/kernels.h)
};
/// For every device: tokens of a prompt skip the layers that write no memory, unless their logits are needed.
constexpr uint32_t kEarlyStopFeature = 10;

/// Names of features that no kernel uses yet are also accepted; turning them off has no effect. The last applies to
/// every device.
constexpr const char* kVulkanFeatureNames[] = {
    "subgroup",     "integer_dot",   "texel_buffers", "run_ahead", "cooperative_matrix", "float16",
    "int8_storage", "int16_storage", "timeline",      "fused_ops", "early_stop"};
constexpr uint32_t kVulkanFeatures = sizeof(kVulkanFeatureNames) / sizeof(kVulkanFeatureNames[0]);

static_assert(kVulkanFeatures == kEarlyStopFeature + 1, "the last name is that of the early stop");

constexpr uint32_t featureBit(VulkanFeature feature) {
  return 1u << static_cast<uint32_t>(feature);
}

/// Further names for LoadOptions.enabled_features: submissions of any length on a device that fails in long ones, and
/// use of a device that is excluded. "all" does not include them.
constexpr uint32_t kLongSubmissions = kVulkanFeatures;
constexpr uint32_t kDeviceItself = kVulkanFeatures + 1;
constexpr const char* kOverrideNames[] = {"long_submissions", "device"};

/// Parses names separated by commas ("all": every name; null: none) into a set of bits, one per entry of
/// kVulkanFeatureNames. Other names give ORIEL_ERROR_ARGUMENT, and the log lists the valid names.
Status readFeatureNames(const char* names, const Log& log, uint32_t* bits);
/// The same for LoadOptions.enabled_features, which also accepts kOverrideNames.
Status readOverrideNames(const char* names, const Log& log, uint32_t* bits);

/// Appends an item to a list separated by commas.
void appendToList(const char* item, char* list, size_t capacity);

/// The names of `bits`, separated by commas.
void writeFeatureNames(uint32_t bits, char* text, size_t capacity);

// Common parts of executors that work in host memory: the arenas, and uploads by copying.

class HostExecutor : public Executor {
 public:
  HostExecutor(const Plan& plan, const ExecutorOptions& options);
  ~HostExecutor() override;

  /// Takes every arena of the plan from the app's allocator.
  Status allocate() { return takeAgain(kAllArenas); }

  Status beginWrite(uint64_t bytes, void** piece) override;
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) override;
  Status finishLoad() override { return kOk; }
  Status finishWrites() override { return kOk; }
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
              const void** piece) override;
  void* step() override { return at(plan_.step); }
  void* rowsOfStep(const BufferRef& place) override { return at(place); }
  const TopTokens* top() const override {
    return reinterpret_cast<const TopTokens*>(at(plan_.top));
  }
  Status logits(uint32_t output, const float** values) override;
  Status keptLogits(uint32_t session, const float** values) override;
  Status copy(const CopyPiece* pieces, size_t count) override;
  Status forget() override;
  Status forget(const BufferRef* pieces, size_t count) override;
  Status giveBack(ArenaSet arenas) override;
  Status takeAgain(ArenaSet arenas) override;
  uint64_t allocatedBytes(ArenaKind kind) const override {
    return allocated_[static_cast<uint32_t>(kind)].load(std::memory_order_relaxed);
  }
  const char* deviceName() const override { return "CPU"; }

  /// The address of a piece, and of an op's bindings.
  uint8_t* at(const BufferRef& ref) const {
    return segment(static_cast<uint32_t>(ref.arena), ref.segment) + ref.offset_bytes;
  }
  float* floats(const Op& op, uint32_t binding) const {
    return reinterpret_cast<float*>(at(op.bindings[binding]));
  }
  uint32_t* words(const Op& op, uint32_t binding) const {
    return reinterpret_cast<uint32_t*>(at(op.bindings[binding]));
  }

 protected:
  /// The slots of the state in binding 3 that token `t` reads and writes. `t` is the first token of its session.
  template <typename Push>
  StepState stepState(const Op& op, const Push& p, uint32_t t) const {
    const StepBlock block(at(plan_.step));
    const View& view = block.view(t, p.view);
    uint32_t* const memory = words(op, 3) + uint64_t{view.first} * p.slot_words;
    return {view.count != 0 ? memory + uint64_t{view.begin} * p.slot_words : nullptr,
            memory + uint64_t{view.slot} * p.slot_words};
  }
  /// kTopBlocks, kTopTokens and kKeepLogits. `output`: the last output, unless all outputs are needed.
  void findTopBlocks(const Op& op, const StepBlock& step, uint32_t output) const;
  void findTopTokens(const Op& op, const StepBlock& step, uint32_t output) const;
  void keepOutput(const Op& op, const StepBlock& step, uint32_t output) const;
  /// kPool for one text.
  void poolText(const Op& op, const StepBlock& step, uint32_t output) const;

  /// True before the first step with prepared weights: all blocks must be checked.
  bool mustCheck() const { return prepared_ != nullptr && !prepared_->isChecked(); }

  const Plan& plan_;
  const Log log_;
  PreparedWeights* const prepared_;

 private:
  Status takeSegment(uint32_t kind, uint32_t s);
  void dropSegment(uint32_t kind, uint32_t s);
  void wipePiece(ArenaKind kind, uint64_t begin, uint64_t end);
  uint32_t segmentCount(uint32_t kind) const { return kind == 0 ? plan_.weight_segments : 1; }
  uint64_t segmentBytes(uint32_t kind, uint32_t s) const;
  uint8_t* segment(uint32_t kind, uint32_t s) const {
    return kind == 0 ? weights_[s] : single_[kind] + s * kMaxAllocationBytes;
  }

  const oriel_allocator allocator_;
  uint8_t* weights_[UINT8_MAX + 1] = {};
  uint8_t* single_[kArenaKinds] = {};
  std::atomic<uint64_t> allocated_[kArenaKinds] = {};
};

}  // namespace oriel_internal
