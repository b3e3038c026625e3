#include "vulkan/matrix_units.h"

#include "shaders/shared/layout.h"

namespace oriel_internal {
namespace {

// Of VkComponentTypeKHR and VkScopeKHR.
constexpr int32_t kFloat16 = 0;
constexpr int32_t kFloat32 = 1;
constexpr int32_t kSubgroupScope = 3;
constexpr uint32_t kMostShapes = 64;

bool isPowerOfTwo(uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

// These bound every tile's rows and tokens, for any division among subgroups: kMatrixSharedBytes.
bool hasRightSize(const CooperativeMatrixProperties& shape, uint32_t subgroup_size) {
  return isPowerOfTwo(shape.m) && isPowerOfTwo(shape.n) && isPowerOfTwo(shape.k) && shape.m >= 8 &&
         shape.m <= 16 && shape.n >= 8 && shape.n <= 32 && shape.k >= 8 && shape.k <= kUnit &&
         uint64_t{shape.m} * shape.n * (kMatrixLanes / subgroup_size) <= kMatrixSums;
}

bool hasRightTypes(const CooperativeMatrixProperties& shape) {
  return shape.a_type == kFloat16 && shape.b_type == kFloat16 && shape.c_type == kFloat32 &&
         shape.result_type == kFloat32 && shape.saturating == VK_FALSE &&
         shape.scope == kSubgroupScope;
}

// True if kernels have full subgroups of that size, and enough shared memory. Some drivers with a single size accept no
// requests for it.
bool readSubgroups(const VulkanApi& api, VkPhysicalDevice physical, uint32_t subgroup_size,
                   MatrixShape* shape) {
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {};
  sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
  const VkPhysicalDeviceProperties device = readProperties(api, physical, &sizes);
  shape->asks_for_size = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  return isPowerOfTwo(subgroup_size) && subgroup_size <= kMatrixLanes &&
         subgroup_size >= sizes.minSubgroupSize && subgroup_size <= sizes.maxSubgroupSize &&
         (shape->asks_for_size || sizes.minSubgroupSize == sizes.maxSubgroupSize) &&
         kMatrixLanes / subgroup_size <= sizes.maxComputeWorkgroupSubgroups &&
         device.limits.maxComputeSharedMemorySize >= kMatrixSharedBytes;
}

}  // namespace

MatrixFeatures::MatrixFeatures() {
  memory_model_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES_KHR;
  subgroups_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  matrices_.type = kCooperativeMatrixFeaturesType;
}

void* MatrixFeatures::chain(void* next) {
  memory_model_.pNext = next;
  subgroups_.pNext = &memory_model_;
  matrices_.next = &subgroups_;
  return &matrices_;
}

bool MatrixFeatures::keepNeeded() {
  const bool all = memory_model_.vulkanMemoryModel != VK_FALSE &&
                   // Atomics of all kernels need this once the memory model is enabled.
                   memory_model_.vulkanMemoryModelDeviceScope != VK_FALSE &&
                   subgroups_.subgroupSizeControl != VK_FALSE &&
                   subgroups_.computeFullSubgroups != VK_FALSE && matrices_.matrix != VK_FALSE;
  memory_model_.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
  matrices_.robust_access = VK_FALSE;
  return all;
}

MatrixShape findMatrixShape(const VulkanApi& api, VkPhysicalDevice physical,
                            uint32_t subgroup_size) {
  MatrixShape best;
  MatrixFeatures features;
  readFeatures(api, physical, features.chain(nullptr));
  if (!features.keepNeeded() || api.cooperativeMatrixProperties == nullptr ||
      !readSubgroups(api, physical, subgroup_size, &best)) {
    return best;
  }
  CooperativeMatrixProperties shapes[kMostShapes] = {};
  for (CooperativeMatrixProperties& shape : shapes) {
    shape.type = kCooperativeMatrixPropertiesType;
  }
  uint32_t count = kMostShapes;
  if (api.cooperativeMatrixProperties(physical, &count, shapes) < 0) {
    return best;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const CooperativeMatrixProperties& shape = shapes[i];
    // The largest shape: fewest loads per product.
    if (hasRightTypes(shape) && hasRightSize(shape, subgroup_size) &&
        shape.m * shape.n > best.m * best.n) {
      best.m = shape.m;
      best.n = shape.n;
      best.k = shape.k;
    }
  }
  return best;
}

}  // namespace oriel_internal
