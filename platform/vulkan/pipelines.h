// The pipelines a plan needs, each compiled once.
#pragma once

#include "vulkan/kernels.h"

namespace oriel {

class Pipelines {
 public:
  /// The index of the pipeline for `kernel`, to be compiled by compile() if it is new.
  Status add(const Kernel& kernel, const Log& log, uint32_t* index);
  Status compile(const VulkanDevice& device, VkPipelineLayout layout, VkPipelineCache cache,
                 const Log& log);
  void release(const VulkanDevice& device);

  VkPipeline at(uint32_t index) const { return entries_[index].pipeline; }
  uint32_t count() const { return count_; }

 private:
  struct Entry {
    uint32_t shader;
    uint32_t constants[kMaxSpecConstants];
    VkPipeline pipeline;
  };
  /// A model's plan has at most 5 weight types in 3 lists and a handful of other ops; the self-test has
  /// every kernel.
  static constexpr uint32_t kMaxPipelines = 192;

  Entry entries_[kMaxPipelines] = {};
  uint32_t count_ = 0;
};

}  // namespace oriel
