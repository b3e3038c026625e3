#include "vulkan/pipelines.h"

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
  *index = count_++;
  return kOk;
}

Status Pipelines::compile(const VulkanDevice& device, VkPipelineLayout layout,
                          VkPipelineCache cache, const Log& log) {
  const VulkanApi& api = device.api;
  VkSpecializationMapEntry map[kMaxSpecConstants];
  for (uint32_t i = 0; i < kMaxSpecConstants; ++i) {
    map[i] = {i, static_cast<uint32_t>(i * sizeof(uint32_t)), sizeof(uint32_t)};
  }
  for (uint32_t i = 0; i < count_; ++i) {
    Entry* entry = &entries_[i];
    if (entry->pipeline != VK_NULL_HANDLE) {
      continue;
    }
    const ShaderCode& code = kShaders[entry->shader];
    VkShaderModuleCreateInfo module_info = {};
    module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
    module_info.codeSize = code.bytes;
    module_info.pCode = code.words;
    VkShaderModule module = VK_NULL_HANDLE;
    ORIEL_TRY(checkVk(api.vkCreateShaderModule(device.device, &module_info, nullptr, &module),
                      "create a shader module", log));

    const VkSpecializationInfo constants = {kMaxSpecConstants, map, sizeof(entry->constants),
                                            entry->constants};
    VkComputePipelineCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    info.stage.module = module;
    info.stage.pName = "main";
    info.stage.pSpecializationInfo = &constants;
    info.layout = layout;
    const VkResult result = api.vkCreateComputePipelines(device.device, cache, 1, &info, nullptr,
                                                         &entry->pipeline);
    api.vkDestroyShaderModule(device.device, module, nullptr);
    if (result < 0) {
      entry->pipeline = VK_NULL_HANDLE;
      log.write(ORIEL_LOG_WARNING, "kernel %s failed to compile", code.name);
    }
    ORIEL_TRY(checkVk(result, "compile a kernel", log));
  }
  return kOk;
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
