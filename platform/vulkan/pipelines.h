// The pipelines of a plan. Each is compiled once, in parallel with the caller's other work.
#pragma once

#include <atomic>

#include "base/scratch.h"
#include "os/thread.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

class Pipelines {
 public:
  /// Returns the index of the pipeline for `kernel`; a new one is compiled later.
  Status add(const Kernel& kernel, const Log& log, uint32_t* index);
  /// Unpacks kernels with memory from `workspace`, passes them to the driver and compiles on a few threads of its own
  /// (none on a single processor). Until finish(), call only join(), and release() after it.
  /// `place`: recorded by the driver's watch during compilation.
  Status start(const VulkanDevice& device, VkPipelineLayout layout, VkPipelineCache cache,
               DriverPlace place, Workspace* workspace, const Log& log);
  /// Compiles the rest on one more thread, and waits. If a kernel with subgroup arithmetic does not compile, its version
  /// without takes its place, with memory from `workspace`. Logs the name of any other kernel that fails.
  Status finish(Workspace* workspace, const Log& log, const StopCheck& stop);
  /// Lets the threads finish their present pipelines. finish() compiles the rest.
  void join();
  void release(const VulkanDevice& device);

  uint32_t count() const { return count_; }
  /// Index of its shader.
  uint32_t shader(uint32_t index) const { return entries_[index].shader; }
  /// Optional features that the pipelines need.
  uint32_t features() const;
  VkPipeline at(uint32_t index) const { return entries_[index].pipeline; }
  /// Call after finish().
  PipelineStats stats() const;

 private:
  struct Entry {
    uint32_t shader;
    uint32_t constants[kMaxSpecConstants];
    uint32_t subgroup_size;
    bool full_subgroups;
    bool divisible;
    bool told;              ///< the driver reported the origin of the pipeline
    bool from_cache;        ///< the reported origin
    VkResult result;        ///< VK_NOT_READY: still to be compiled
    VkShaderModule module;  ///< until finish(); shared by entries with one shader
    VkPipeline pipeline;
  };
  /// A plan has at most 5 weight types in 3 lists and a few other ops. The self-test multiplies 3 types in
  /// up to 14 ways, and all as experts, too.
  static constexpr uint32_t kMaxPipelines = 80;
  /// More threads gain little: a plan has about ten pipelines, and weights are repacked at the same time.
  static constexpr uint32_t kMaxThreads = 3;
  /// Drivers' compilers recurse deeply.
  static constexpr uint32_t kStackBytes = 8u << 20;

  Status makeModules(Workspace* workspace, const Log& log);
  Status makeModules(uint32_t block, uint8_t* unpacked, Workspace* workspace, const Log& log);
  void releaseModules(const VulkanDevice& device);
  static void compileAll(void* pipelines);
  Status compileHere(const StopCheck& stop);
  Status compileRest(const StopCheck& stop);
  VkResult compile(Entry* entry) const;
  /// Replaces a kernel that failed to compile with its stand-in; false if it has none.
  static bool standIn(Entry* entry, const Log& log);

  Entry entries_[kMaxPipelines] = {};
  uint32_t count_ = 0;
  const VulkanDevice* device_ = nullptr;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  DriverPlace place_ = DriverPlace::kCompile;
  std::atomic<uint32_t> next_{0};
  double begin_ms_ = 0;
  double took_ms_ = 0;
  Thread threads_[kMaxThreads];
};

}  // namespace oriel_internal
