// Matrix units (VK_KHR_cooperative_matrix) that multiply f16 and accumulate in float32, and the other requirements of
// their kernels: f16 shaders (VulkanFeature::kFloat16), Vulkan's memory model, and a known subgroup size.
#pragma once

#include "vulkan/loader.h"

namespace oriel_internal {

/// Workgroup size of kernels with matrix units; every Vulkan device allows it. Large tiles have twice as many lanes.
constexpr uint32_t kMatrixLanes = 128;
constexpr uint32_t kLargeMatrixLanes = 2 * kMatrixLanes;
/// Shared memory for the kernels' tiles; the Vulkan minimum is too small.
constexpr uint32_t kMatrixSharedBytes = 32768;
/// Sums that kMatrixLanes store in shared memory at a time, a matrix for each subgroup.
constexpr uint32_t kMatrixSums = 1024;

constexpr const char* kSubgroupSizeControl = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
constexpr const char* kMatrixExtensions[] = {
    "VK_KHR_cooperative_matrix", VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, kSubgroupSizeControl};
constexpr uint32_t kMatrixExtensionCount = 3;

/// The feature structures of those extensions in one chain, to query and to enable them.
class MatrixFeatures {
 public:
  MatrixFeatures();
  MatrixFeatures(const MatrixFeatures&) = delete;
  MatrixFeatures& operator=(const MatrixFeatures&) = delete;
  void* chain(void* next);
  /// Keeps only the features that kernels need. False if any of these features is missing.
  bool keepNeeded();

 private:
  VkPhysicalDeviceVulkanMemoryModelFeaturesKHR memory_model_ = {};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups_ = {};
  CooperativeMatrixFeatures matrices_ = {};
};

/// a[m][k] times b[k][n], by a subgroup.
struct MatrixShape {
  uint32_t m = 0;  ///< 0: no matrix units
  uint32_t n = 0;
  uint32_t k = 0;
  bool asks_for_size =
      false;  ///< a pipeline asks for its subgroup size; else the device has only one
};

/// For a device with the extensions and f16 shaders, and subgroups of `subgroup_size` lanes.
MatrixShape findMatrixShape(const VulkanApi& api, VkPhysicalDevice physical,
                            uint32_t subgroup_size);

}  // namespace oriel_internal
