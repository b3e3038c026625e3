#include "vulkan/pipelines.h"

#include <algorithm>
#include <cstring>

#include "vulkan/shader_table.h"

namespace oriel {

Status Pipelines::add(const Kernel& kernel, const Log& log, uint32_t* index) {
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].shader == kernel.shader &&
        std::memcmp(entries_[i].constants, kernel.constants, sizeof(kernel.constants)) == 0) {
      *index = i;
      return kOk;
    }
  }
  if (count_ == kMaxPipelines) {
    return log.fail(ORIEL_ERROR_INTERNAL, "a plan with more than %u pipelines: please report it",
                    kMaxPipelines);
  }
  Entry* entry = &entries_[count_];
  entry->shader = kernel.shader;
  std::memcpy(entry->constants, kernel.constants, sizeof(kernel.constants));
  entry->subgroup_size = kernel.subgroup_size;
  entry->divisible = kernel.divisible;
  *index = count_++;
  return kOk;
}

void Pipelines::start(const VulkanDevice& device, VkPipelineLayout layout, VkPipelineCache cache) {
  device_ = &device;
  layout_ = layout;
  cache_ = cache;
  next_.store(0, std::memory_order_relaxed);
  begin_ms_ = nowMs();
  const uint32_t threads = std::min({allowedProcessors() - 1, kMaxThreads, count_});
  for (uint32_t i = 0; i < threads; ++i) {
    // One that the system refuses is one less.
    (void)threads_[i].start(compileAll, this, kStackBytes);
  }
}

void Pipelines::compileAll(void* pipelines) {
  Pipelines* self = static_cast<Pipelines*>(pipelines);
  for (uint32_t i = self->next_.fetch_add(1, std::memory_order_relaxed); i < self->count_;
       i = self->next_.fetch_add(1, std::memory_order_relaxed)) {
    if (self->entries_[i].pipeline == VK_NULL_HANDLE) {
      self->entries_[i].result = self->compile(&self->entries_[i]);
    }
  }
}

VkResult Pipelines::compile(Entry* entry) const {
  const VulkanApi& api = device_->api;
  const ShaderCode& code = kShaders[entry->shader];
  VkShaderModuleCreateInfo module_info = {};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = code.bytes;
  module_info.pCode = code.words;
  VkShaderModule module = VK_NULL_HANDLE;
  VkResult result = api.vkCreateShaderModule(device_->device, &module_info, nullptr, &module);
  if (result < 0) {
    return result;
  }
  VkSpecializationMapEntry map[kMaxSpecConstants];
  for (uint32_t i = 0; i < kMaxSpecConstants; ++i) {
    map[i] = {i, static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
  }
  const VkSpecializationInfo constants = {kMaxSpecConstants, map, sizeof(entry->constants),
                                          entry->constants};
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.flags = entry->divisible ? VkPipelineCreateFlags{VK_PIPELINE_CREATE_DISPATCH_BASE} : 0;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &constants;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT subgroups = {};
  subgroups.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT;
  subgroups.requiredSubgroupSize = entry->subgroup_size;
  if (entry->subgroup_size != 0) {
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    info.stage.pNext = &subgroups;
  }
  info.layout = layout_;
  VkPipelineCreationFeedbackEXT whole = {};
  VkPipelineCreationFeedbackEXT stage = {};
  VkPipelineCreationFeedbackCreateInfoEXT feedback = {};
  feedback.sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO_EXT;
  feedback.pPipelineCreationFeedback = &whole;
  feedback.pipelineStageCreationFeedbackCount = 1;
  feedback.pPipelineStageCreationFeedbacks = &stage;
  if (device_->caps.creation_feedback) {
    info.pNext = &feedback;
  }
  result =
      api.vkCreateComputePipelines(device_->device, cache_, 1, &info, nullptr, &entry->pipeline);
  api.vkDestroyShaderModule(device_->device, module, nullptr);
  if (result < 0) {
    entry->pipeline = VK_NULL_HANDLE;
  }
  constexpr VkPipelineCreationFeedbackFlagsEXT kHit =
      VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT_EXT;
  entry->told = (whole.flags & VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT_EXT) != 0;
  entry->from_cache = ((whole.flags | stage.flags) & kHit) != 0;
  return result;
}

Status Pipelines::finish(const Log& log) {
  compileAll(this);
  join();
  took_ms_ = nowMs() - begin_ms_;
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].result < 0) {
      log.write(ORIEL_LOG_WARNING, "kernel %s failed to compile",
                kShaders[entries_[i].shader].name);
    }
    ORIEL_TRY(checkVk(entries_[i].result, "compile a kernel", log));
  }
  return kOk;
}

void Pipelines::join() {
  next_.store(kMaxPipelines, std::memory_order_relaxed);
  for (Thread& thread : threads_) {
    thread.join();
  }
}

PipelineStats Pipelines::stats() const {
  PipelineStats stats;
  stats.total = count_;
  stats.known = count_ != 0;
  for (uint32_t i = 0; i < count_; ++i) {
    stats.known = stats.known && entries_[i].told;
    stats.from_cache += entries_[i].from_cache ? 1 : 0;
  }
  stats.ms = took_ms_;
  return stats;
}

void Pipelines::release(const VulkanDevice& device) {
  for (uint32_t i = 0; i < count_; ++i) {
    if (entries_[i].pipeline != VK_NULL_HANDLE) {
      device.api.vkDestroyPipeline(device.device, entries_[i].pipeline, nullptr);
      entries_[i].pipeline = VK_NULL_HANDLE;
    }
  }
  count_ = 0;
}

}  // namespace oriel
