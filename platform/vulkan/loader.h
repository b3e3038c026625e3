// The Vulkan entry points Oriel uses, found at run time: an app that links Oriel does not link Vulkan.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "exec/executor.h"
#include "os/os.h"

/// Entry points that exist before an instance does.
#define ORIEL_VULKAN_GLOBAL_FUNCTIONS(X)    \
  X(vkEnumerateInstanceVersion)             \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkCreateInstance)

/// Entry points of an instance and its devices.
#define ORIEL_VULKAN_INSTANCE_FUNCTIONS(X)    \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkDestroyDevice)                          \
  X(vkGetDeviceQueue)                         \
  X(vkCreateBuffer)                           \
  X(vkDestroyBuffer)                          \
  X(vkCreateBufferView)                       \
  X(vkDestroyBufferView)                      \
  X(vkGetBufferMemoryRequirements)            \
  X(vkAllocateMemory)                         \
  X(vkFreeMemory)                             \
  X(vkBindBufferMemory)                       \
  X(vkMapMemory)                              \
  X(vkFlushMappedMemoryRanges)                \
  X(vkInvalidateMappedMemoryRanges)           \
  X(vkCreateDescriptorSetLayout)              \
  X(vkDestroyDescriptorSetLayout)             \
  X(vkCreateDescriptorPool)                   \
  X(vkDestroyDescriptorPool)                  \
  X(vkAllocateDescriptorSets)                 \
  X(vkUpdateDescriptorSets)                   \
  X(vkCreatePipelineLayout)                   \
  X(vkDestroyPipelineLayout)                  \
  X(vkCreatePipelineCache)                    \
  X(vkDestroyPipelineCache)                   \
  X(vkGetPipelineCacheData)                   \
  X(vkCreateShaderModule)                     \
  X(vkDestroyShaderModule)                    \
  X(vkCreateComputePipelines)                 \
  X(vkDestroyPipeline)                        \
  X(vkCreateCommandPool)                      \
  X(vkDestroyCommandPool)                     \
  X(vkAllocateCommandBuffers)                 \
  X(vkBeginCommandBuffer)                     \
  X(vkEndCommandBuffer)                       \
  X(vkCmdBindPipeline)                        \
  X(vkCmdBindDescriptorSets)                  \
  X(vkCmdPushConstants)                       \
  X(vkCmdDispatch)                            \
  X(vkCmdDispatchBase)                        \
  X(vkCmdDispatchIndirect)                    \
  X(vkCmdPipelineBarrier)                     \
  X(vkCmdCopyBuffer)                          \
  X(vkCmdFillBuffer)                          \
  X(vkCreateQueryPool)                        \
  X(vkDestroyQueryPool)                       \
  X(vkCmdResetQueryPool)                      \
  X(vkCmdWriteTimestamp)                      \
  X(vkGetQueryPoolResults)                    \
  X(vkCreateFence)                            \
  X(vkDestroyFence)                           \
  X(vkResetFences)                            \
  X(vkWaitForFences)                          \
  X(vkQueueSubmit)

namespace oriel_internal {

// VK_KHR_cooperative_matrix, which the oldest supported headers do not declare.
struct CooperativeMatrixProperties {  // VkCooperativeMatrixPropertiesKHR
  VkStructureType type;
  void* next;
  uint32_t m, n, k;
  int32_t a_type, b_type, c_type, result_type;
  VkBool32 saturating;
  int32_t scope;
};
struct CooperativeMatrixFeatures {  // VkPhysicalDeviceCooperativeMatrixFeaturesKHR
  VkStructureType type;
  void* next;
  VkBool32 matrix, robust_access;
};
constexpr VkStructureType kCooperativeMatrixFeaturesType = static_cast<VkStructureType>(1000506000);
constexpr VkStructureType kCooperativeMatrixPropertiesType =
    static_cast<VkStructureType>(1000506001);
using CooperativeMatrixPropertiesFunction = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*,
                                                                 CooperativeMatrixProperties*);

/// All Vulkan calls go through these tables, so that tests can count them and make them fail.
struct VulkanApi {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
#define ORIEL_DECLARE(name) PFN_##name name = nullptr;
  ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_DECLARE)
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_DECLARE)
#undef ORIEL_DECLARE
  /// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR; null if the loader does not know it.
  CooperativeMatrixPropertiesFunction cooperativeMatrixProperties = nullptr;
};

/// The type of ExecutorOptions::driver_tap.
struct VulkanDriverTap {
  /// Called after each group of entry points is loaded (before and after the instance is created); may replace them.
  void (*wrap)(VulkanApi* api);
};

/// Queries a Vulkan 1.1 device for the features in a chain of feature structures.
void readFeatures(const VulkanApi& api, VkPhysicalDevice physical, void* chain);
/// Reads the properties with a chain of further structures. Returns the Vulkan 1.0 properties.
VkPhysicalDeviceProperties readProperties(const VulkanApi& api, VkPhysicalDevice physical,
                                          void* chain);

/// Opens the Vulkan loader and fills the global entry points. False without a loader of version 1.1.
bool loadGlobalFunctions(SharedLibrary* library, VulkanApi* api);
/// Fills the other entry points. False if the loader lacks one.
bool loadInstanceFunctions(VkInstance instance, VulkanApi* api);

/// kOk for VK_SUCCESS; else logs "cannot <what>: ..." and returns the matching status.
Status checkVk(VkResult result, const char* what, const Log& log);

/// checkVk() for a call that creates `*handle`. Sets it to null on failure, because drivers leave it undefined.
template <typename Handle>
Status checkMade(VkResult result, Handle* handle, const char* what, const Log& log) {
  if (result < 0) {
    *handle = VK_NULL_HANDLE;
  }
  return checkVk(result, what, log);
}

}  // namespace oriel_internal
