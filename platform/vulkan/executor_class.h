// The Vulkan executor, implemented in vulkan_executor.cpp, and in executor_trust.cpp for the choice of a device and
// the tests of its kernels.
#pragma once

#include <memory>

#include "exec/running_call.h"
#include "vulkan/memory.h"
#include "vulkan/pipelines.h"
#include "vulkan/step_commands.h"

namespace oriel_internal {

class VulkanExecutor final : public Executor, private MatmulTuning {
 public:
  VulkanExecutor(const Plan& plan, const ExecutorOptions& options, void* per_op)
      : plan_(plan),
        options_(options),
        n_host_ops_(hostOps(plan)),
        n_handles_(plan.opsBefore(kStepLists) - n_host_ops_),
        handles_(static_cast<OpHandles*>(per_op)),
        more_pieces_(reinterpret_cast<StepPiece*>(handles_ + n_handles_)),
        device_() {
    stopBy(options.stop);
    std::uninitialized_fill_n(handles_, n_handles_, OpHandles());
    std::uninitialized_fill_n(more_pieces_, n_host_ops_, StepPiece());
  }
  ~VulkanExecutor() override;
  Status create();

  Status beginWrite(uint64_t bytes, void** piece) override {
    return transfers_.beginWrite(bytes, piece);
  }
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) override {
    return transfers_.endWrite(destination, offset_bytes, bytes);
  }
  Status finishWrites() override { return transfers_.finishWrites(); }
  Status finishLoad() override;
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
              const void** piece) override {
    return transfers_.read(source, offset_bytes, bytes, piece);
  }
  void* step() override { return arenas_.mapped(plan_.step); }
  void* rowsOfStep(const BufferRef& place) override { return arenas_.mapped(place); }
  Status run(StepRun what, const StopCheck& stop) override;
  const TopTokens* top() const override {
    return reinterpret_cast<const TopTokens*>(arenas_.mapped(plan_.top));
  }
  Status logits(uint32_t output, const float** values) override {
    return transfers_.logits(output, values);
  }
  bool runsAhead() const override {
    return device_.caps.has(VulkanFeature::kRunAhead) && n_host_ops_ == 0 &&
           plan_.sessionCount() == 1;
  }
  void* aheadStep() override { return stepBlock(ahead_ ? 1 - block_ : 1); }
  Status runAhead(bool* more) override;
  Status dropAhead() override;
  bool drain() override { return queue_.drain(); }
  Status forget() override {
    (void)dropAhead();  // the queue keeps a failure; the next call returns it
    return transfers_.forget();
  }
  Status keptLogits(uint32_t session, const float** values) override {
    return transfers_.keptLogits(session, values);
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    return transfers_.copy(pieces, count);
  }
  Status forget(const BufferRef* pieces, size_t count) override {
    (void)dropAhead();
    return transfers_.forget(pieces, count);
  }
  Status giveBack(ArenaSet arenas) override;
  Status takeAgain(ArenaSet arenas) override;
  uint64_t allocatedBytes(ArenaKind kind) const override { return arenas_.allocatedBytes(kind); }
  const char* deviceName() const override { return device_.caps.name; }
  const char* driverName() const override { return device_.caps.driver; }
  PipelineStats pipelineStats() const override { return pipelines_.stats(); }
  void describeFeatures(char* text, size_t capacity) const override {
    oriel_internal::describeFeatures(device_.caps, text, capacity);
  }
  const char* pathName() const override { return subgroupPath(device_.caps); }
  MatmulTuning* matmulTuning() override { return this; }
  const char* candidateName(MatmulUse use, WeightType type, uint32_t index) const override {
    const MatmulCandidate* const candidate = choices_.candidate(use, type, index);
    return candidate != nullptr ? candidate->name : nullptr;
  }
  uint32_t choice(MatmulUse use, WeightType type) const override {
    return choices_.choice(use, type);
  }
  uint32_t standard(MatmulUse use, WeightType type) const override {
    return choices_.standard(use, type);
  }
  bool isMeasured(MatmulUse use, WeightType type) const override {
    return choices_.measured(use, type);
  }
  Status take(MatmulUse use, WeightType type, uint32_t index) override;
  bool keep(MatmulUse use, WeightType type, uint32_t index) override {
    return choices_.keep(use, type, index, options_.log);
  }
  Status timeOps(StepList list, OpTime* op_times) override;
  void judge(StepList list, const Op* ops, uint32_t count, bool right) override;
  bool multipliesHalves(StepList list, const Op* ops, uint32_t count) const override;
  void keepJudgement() override {
    if (options_.uses_wrong) {
      verdict().survivedTest();
    }
    verdict().keep(device_.caps, options_.trust_dir);
  }
  void describeTrust(char* text, size_t capacity) const override;

 private:
  /// Opens a device that passed its tests, if any, and takes its memory.
  Status takeDevice(const ExecutorOptions& options);
  /// Opens the device with the kernels of the plan.
  Status openDevice(const ExecutorOptions& options, uint32_t refused, const char* why);
  /// Uses the device of `other` if all kernels of the plan are trusted there.
  Status shareDevice(const VulkanExecutor& other, const ExecutorOptions& options, bool* shares);
  void closeDevice();
  bool wantsTest(const ExecutorOptions& options) const;
  /// Runs the self-test and turns off kernels with wrong results.
  Status testDevice(const ExecutorOptions& options);
  bool turnOffWrong(uint32_t enabled, const Log& log);
  static void warnOnly(oriel_log_level level, const char* message, void* log);
  /// Name of a wrong kernel without a replacement; null: none.
  const char* wrongKernel() const;
  Verdict& verdict() { return options_.verdict != nullptr ? *options_.verdict : device_.verdict; }
  const Verdict& verdict() const {
    return options_.verdict != nullptr ? *options_.verdict : device_.verdict;
  }
  bool kernelOf(StepList list, const Op& op, Kernel* kernel) const;
  void judgeKernel(uint32_t shader, bool right);
  Status choosePipelines();
  Status choosePipelines(StepList list, uint32_t index, double piece_work, OpHandles* handles);
  Status startPipelines();
  Status finishPipelines();
  Status takeFirstSteps();
  /// The upload ring as working memory; only while no upload is active.
  Workspace ringWorkspace() const {
    return {arenas_.mapped(plan_.upload), static_cast<size_t>(plan_.upload.size_bytes),
            options_.allocator != nullptr ? options_.allocator : &defaultAllocator()};
  }
  StepCommands::Source stepSource();
  Status recordSteps();
  Status timeOps(StepList list, VkQueryPool times, OpTime* op_times);
  void expectOps(StepList list, OpTime* op_times);
  void releaseSets();

  /// `many`: more than one output.
  Status submitStep(StepRun what, bool many, const StopCheck& stop);
  Status watchStep(StepRun what, bool many, const StopCheck& stop);
  Status runHostOp(const Op& op);
  uint32_t afterIdleRound(const Op* ops, const StepCommands::Range& body, uint32_t piece) const;
  Status submitAhead(bool* more);
  Status land(uint32_t flight);
  /// Waits for the work that a failed run left in flight.
  Status endRun(Status status);
  void* stepBlock(uint32_t block) const {
    return arenas_.mapped(block == 0 ? plan_.step : plan_.step_ahead);
  }

  const Plan& plan_;
  ExecutorOptions options_;
  const uint32_t n_host_ops_;
  const uint32_t n_handles_;  // ops with kernels
  OpHandles* const handles_;
  StepPiece* const more_pieces_;  // after the handles
  // A union, so that the destructor can skip the device if it never finished its work.
  union {
    VulkanDevice device_;
  };
  DeviceArenas arenas_;
  PipelineCache pipeline_cache_;
  Pipelines pipelines_;
  MatmulChoices choices_;
  uint8_t failed_[Verdict::kMaxKernels / 8] = {};  // results of judge(), a bit per kernel
  Bindings bindings_;
  Queue queue_;
  Transfers transfers_;
  StepCommands steps_;
  struct Flight {
    double work;
    double sent_ms;
  };
  Flight flights_[kFlights] = {};
  double landed_ms_ = 0;          // when the host saw the latest flight end
  Pace paces_[3];                 // of a token, a chunk, a batch
  Pace* pace_ = nullptr;          // of the present run
  uint32_t block_ = 0;            // step block of the latest run, or of the step ahead
  uint32_t features_in_use_ = 0;  // optional features that the kernels use
  bool ahead_ = false;            // the step in that block is in flight, except its head
  bool keeps_cache_ = false;      // the cache was cleared and is still allocated
  AttentionGroups attention_groups_;
};

}  // namespace oriel_internal
