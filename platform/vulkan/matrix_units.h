// Matrix units (VK_KHR_cooperative_matrix) that multiply f16 and add up in float32, and all that kernels for them
// take for granted besides shaders in f16 (VulkanFeature::kFloat16): Vulkan's memory model, subgroups of a known size.
#pragma once

#include "vulkan/loader.h"

namespace oriel_internal {

/// Workgroups of kernels with matrix units; every Vulkan device allows as many.
constexpr uint32_t kMatrixLanes = 128;
/// What the kernels' tiles may take; the Vulkan minimum would not do.
constexpr uint32_t kMatrixSharedBytes = 32768;
/// Sums that the subgroups of a workgroup lay down in shared memory at a time, one matrix each.
constexpr uint32_t kMatrixSums = 1024;

constexpr const char* kSubgroupSizeControl = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
constexpr const char* kMatrixExtensions[] = {
    "VK_KHR_cooperative_matrix", VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, kSubgroupSizeControl};
constexpr uint32_t kMatrixExtensionCount = 3;

/// The feature structures behind those extensions, all in one chain; to be asked with, and to be enabled with.
class MatrixFeatures {
 public:
  MatrixFeatures();
  MatrixFeatures(const MatrixFeatures&) = delete;
  MatrixFeatures& operator=(const MatrixFeatures&) = delete;
  void* chain(void* next);
  /// What kernels need, and nothing else; false when something of it is not there.
  bool keepNeeded();

 private:
  VkPhysicalDeviceVulkanMemoryModelFeaturesKHR memory_model_ = {};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups_ = {};
  CooperativeMatrixFeatures matrices_ = {};
};

/// a[m][k] times b[k][n], by a subgroup.
struct MatrixShape {
  uint32_t m = 0;  ///< 0: there are no such units
  uint32_t n = 0;
  uint32_t k = 0;
};

/// Of a device that has the extensions and shaders in f16, with subgroups of `subgroup_size` lanes.
MatrixShape findMatrixShape(const VulkanApi& api, VkPhysicalDevice physical,
                            uint32_t subgroup_size);

}  // namespace oriel_internal
