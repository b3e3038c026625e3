#include "vulkan/device_caps.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "vulkan/known_devices.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {
namespace {

// Requirements of every kernel. The Vulkan minimum is stated if it is too low.
constexpr uint32_t kNeededStorageBuffers = kMaxOpBindings;  // minimum 4
constexpr uint32_t kNeededInvocations = 128;
constexpr uint32_t kNeededSharedBytes = 16384;
constexpr uint32_t kNeededPushBytes = 128;

// The first compute queue family, preferably without graphics: a long submission on a graphics queue stalls the
// desktop.
bool findComputeFamily(const VulkanApi& api, VkPhysicalDevice physical, DeviceCaps* caps) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (const VkQueueFlags unwanted : {VkQueueFlags{VK_QUEUE_GRAPHICS_BIT}, VkQueueFlags{0}}) {
    for (uint32_t i = 0; i < count; ++i) {
      const VkQueueFlags flags = families[i].queueFlags;
      if (families[i].queueCount > 0 && (flags & VK_QUEUE_COMPUTE_BIT) != 0 &&
          (flags & unwanted) == 0) {
        caps->compute_family = i;
        caps->timestamp_bits = families[i].timestampValidBits;
        return true;
      }
    }
  }
  return false;
}

// Some drivers report 0 or a size that is not a power of two. Kernels cannot rely on such subgroups.
uint32_t saneSubgroupSize(uint32_t reported) {
  return reported != 0 && (reported & (reported - 1)) == 0 ? reported : 1;
}

// Devices that have the extension.
bool canRequireFullSubgroups(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT control = {};
  control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  readFeatures(api, physical, &control);
  return control.computeFullSubgroups != VK_FALSE;
}

// Reads the size of the largest device-local heap. `has_budget`: VK_EXT_memory_budget.
void readMemory(const VulkanApi& api, VkPhysicalDevice physical, bool has_budget,
                DeviceCaps* caps) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory = {};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = has_budget ? &budget : nullptr;
  api.vkGetPhysicalDeviceMemoryProperties2(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 && heap.size > caps->memory_bytes) {
      caps->memory_bytes = heap.size;
      caps->free_bytes = budget.heapBudget[i] - std::min(budget.heapUsage[i], budget.heapBudget[i]);
    }
  }
}

void explainRefusal(const VkPhysicalDeviceLimits& limits, bool has_compute, DeviceCaps* caps) {
  const auto refuse = [caps](const char* what, uint64_t has, uint64_t needs) {
    if (caps->usable()) {
      std::snprintf(caps->reason, sizeof(caps->reason), "%s is %" PRIu64 ", %" PRIu64 " needed",
                    what, has, needs);
    }
  };
  const auto need = [&refuse](const char* what, uint64_t has, uint64_t needs) {
    if (has < needs) {
      refuse(what, has, needs);
    }
  };
  if (!has_compute) {
    std::snprintf(caps->reason, sizeof(caps->reason), "no compute queue");
    return;
  }
  need("maxPerStageDescriptorStorageBuffers", limits.maxPerStageDescriptorStorageBuffers,
       kNeededStorageBuffers);
  need("maxComputeWorkGroupInvocations", limits.maxComputeWorkGroupInvocations, kNeededInvocations);
  need("maxComputeWorkGroupSize[0]", limits.maxComputeWorkGroupSize[0], kNeededInvocations);
  need("maxComputeSharedMemorySize", limits.maxComputeSharedMemorySize, kNeededSharedBytes);
  need("maxPushConstantsSize", limits.maxPushConstantsSize, kNeededPushBytes);
  need("maxStorageBufferRange", limits.maxStorageBufferRange, kMaxBindingBytes);
}

// Devices that have the extension.
void readIntegerDot(const VulkanApi& api, VkPhysicalDevice physical, DeviceCaps* caps) {
  VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR;
  readFeatures(api, physical, &dot);
  if (dot.shaderIntegerDotProduct == VK_FALSE) {
    return;
  }
  caps->features |= featureBit(VulkanFeature::kIntegerDot);
  VkPhysicalDeviceShaderIntegerDotProductPropertiesKHR how = {};
  how.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES_KHR;
  (void)readProperties(api, physical, &how);
  caps->fast_integer_dot = how.integerDotProduct4x8BitPackedSignedAccelerated != VK_FALSE;
}

// Devices that have the extension.
void readFloat16(const VulkanApi& api, VkPhysicalDevice physical, DeviceCaps* caps) {
  VkPhysicalDeviceShaderFloat16Int8FeaturesKHR half = {};
  half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR;
  readFeatures(api, physical, &half);
  if (half.shaderFloat16 != VK_FALSE) {
    caps->features |= featureBit(VulkanFeature::kFloat16);
  }
}

}  // namespace

// Not inlined: the list takes 80 KiB of stack, which other driver calls should not share.
[[gnu::noinline]] uint32_t findExtensions(const VulkanApi& api, VkPhysicalDevice physical,
                                          const char* const* names, uint32_t count) {
  constexpr uint32_t kMost = 320;  // an instance has about 20, a device 230
  VkExtensionProperties extensions[kMost];
  uint32_t n_extensions = kMost;
  const VkResult result =
      physical == VK_NULL_HANDLE
          ? api.vkEnumerateInstanceExtensionProperties(nullptr, &n_extensions, extensions)
          : api.vkEnumerateDeviceExtensionProperties(physical, nullptr, &n_extensions, extensions);
  uint32_t found = 0;
  for (uint32_t n = 0; result >= 0 && n < count; ++n) {
    for (uint32_t i = 0; i < n_extensions; ++i) {
      if (std::strcmp(extensions[i].extensionName, names[n]) == 0) {
        found |= 1u << n;
      }
    }
  }
  return found;
}

const char* kindName(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other";
  }
}

void describeFeatures(const DeviceCaps& caps, char* text, size_t capacity) {
  text[0] = '\0';
  if (caps.has(VulkanFeature::kSubgroup)) {
    char lanes[48];
    std::snprintf(lanes, sizeof(lanes), "subgroup arithmetic (%u lanes)", caps.subgroup_size);
    appendToList(lanes, text, capacity);
  }
  if (caps.has(VulkanFeature::kIntegerDot)) {
    appendToList(caps.fast_integer_dot ? "packed integer dot product (accelerated)"
                                       : "packed integer dot product",
                 text, capacity);
  }
  if (caps.has(VulkanFeature::kFloat16)) {
    appendToList("f16 arithmetic", text, capacity);
  }
  if (caps.has(VulkanFeature::kCooperativeMatrix)) {
    char matrix[64];
    std::snprintf(matrix, sizeof(matrix), "matrix units (f16, %ux%ux%u)", caps.matrix.m,
                  caps.matrix.n, caps.matrix.k);
    appendToList(matrix, text, capacity);
  }
  if (caps.has(VulkanFeature::kTexels)) {
    appendToList("long texel buffers", text, capacity);
  }
  if (caps.has(VulkanFeature::kRunAhead)) {
    appendToList("runs ahead of the host", text, capacity);
  }
}

void describeLimits(const VulkanApi& api, VkPhysicalDevice physical, const DeviceCaps& caps,
                    char* text, size_t capacity) {
  VkPhysicalDeviceProperties properties;
  api.vkGetPhysicalDeviceProperties(physical, &properties);
  const VkPhysicalDeviceLimits& limits = properties.limits;
  size_t used = 0;
  const auto add = [&](const char* format, auto... values) {
    const int length = std::snprintf(text + used, capacity - used, format, values...);
    used = std::min(capacity - 1, used + static_cast<size_t>(std::max(length, 0)));
  };
  add("vendor %x device %x api %u.%u subgroup %u shared %u lanes %u storage %u range %u texels %u "
      "align %u atom %u allocation %" PRIu64 " free %" PRIu64 " types",
      caps.vendor_id, caps.device_id, VK_API_VERSION_MAJOR(properties.apiVersion),
      VK_API_VERSION_MINOR(properties.apiVersion), caps.subgroup_size,
      limits.maxComputeSharedMemorySize, limits.maxComputeWorkGroupInvocations,
      limits.maxPerStageDescriptorStorageBuffers, limits.maxStorageBufferRange,
      limits.maxTexelBufferElements, static_cast<uint32_t>(limits.minStorageBufferOffsetAlignment),
      static_cast<uint32_t>(limits.nonCoherentAtomSize), caps.max_allocation_bytes,
      caps.free_bytes);
  VkPhysicalDeviceMemoryProperties memory;
  api.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    add(" %x@%u", memory.memoryTypes[i].propertyFlags, memory.memoryTypes[i].heapIndex);
  }
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  add("%s", " queues");
  for (uint32_t i = 0; i < count; ++i) {
    add(" %x*%u", families[i].queueFlags, families[i].queueCount);
  }
}

DeviceCaps readDeviceCaps(const VulkanApi& api, VkPhysicalDevice physical, uint32_t enabled) {
  DeviceCaps caps = {};
  VkPhysicalDeviceProperties properties;
  api.vkGetPhysicalDeviceProperties(physical, &properties);
  std::snprintf(caps.name, sizeof(caps.name), "%s", properties.deviceName);
  std::snprintf(caps.driver, sizeof(caps.driver), "version 0x%x", properties.driverVersion);
  caps.type = properties.deviceType;
  caps.vendor_id = properties.vendorID;
  caps.device_id = properties.deviceID;
  caps.driver_version = properties.driverVersion;
  caps.most_lanes = properties.limits.maxComputeWorkGroupInvocations;
  caps.non_coherent_atom_bytes = properties.limits.nonCoherentAtomSize;
  std::memcpy(caps.pipeline_cache_uuid, properties.pipelineCacheUUID, VK_UUID_SIZE);
  if (properties.apiVersion < VK_API_VERSION_1_1) {
    std::snprintf(caps.reason, sizeof(caps.reason), "it has Vulkan %u.%u, 1.1 needed",
                  VK_API_VERSION_MAJOR(properties.apiVersion),
                  VK_API_VERSION_MINOR(properties.apiVersion));
    return caps;
  }

  // kMatrixExtensions follow.
  enum { kSubset, kFeedback, kDriver, kDot, kFloats, kBudget, kMatrix, kSizeControl = kMatrix + 2 };
  const char* names[kMatrix + std::size(kMatrixExtensions)] = {
      kPortabilitySubset, kCreationFeedback, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME,
      kIntegerDotProduct, kFloat16Int8,      VK_EXT_MEMORY_BUDGET_EXTENSION_NAME};
  std::copy(std::begin(kMatrixExtensions), std::end(kMatrixExtensions), names + kMatrix);
  const uint32_t extensions = findExtensions(api, physical, names, std::size(names));
  const auto has = [extensions](uint32_t name) { return (extensions >> name & 1) != 0; };
  caps.needs_portability_subset = has(kSubset);
  caps.creation_feedback = has(kFeedback);
  readMemory(api, physical, has(kBudget), &caps);

  VkPhysicalDeviceDriverPropertiesKHR driver = {};
  driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES_KHR;
  VkPhysicalDeviceSubgroupProperties subgroup = {};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  VkPhysicalDeviceMaintenance3Properties maintenance = {};
  maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  maintenance.pNext = &subgroup;
  VkPhysicalDeviceIDProperties id = {};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  id.pNext = &maintenance;
  const bool names_driver = has(kDriver);
  if (names_driver) {
    subgroup.pNext = &driver;
  }
  (void)readProperties(api, physical, &id);
  if (names_driver) {
    std::snprintf(caps.driver, sizeof(caps.driver), "%.120s%s%.120s", driver.driverName,
                  driver.driverInfo[0] != '\0' ? " " : "", driver.driverInfo);
    caps.driver_id = static_cast<uint32_t>(driver.driverID);
  }
  const KnownFaults faults = findFaults(kKnownDevices, kKnownDeviceCount, caps, enabled);
  const auto isKnownFor = [&faults](VulkanFeature feature) {
    return (faults.features_off & featureBit(feature)) != 0;
  };
  std::memcpy(caps.device_uuid, id.deviceUUID, VK_UUID_SIZE);
  caps.max_allocation_bytes = maintenance.maxMemoryAllocationSize;
  constexpr VkSubgroupFeatureFlags kNeededOperations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  caps.subgroup_size = saneSubgroupSize(subgroup.subgroupSize);
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      (subgroup.supportedOperations & kNeededOperations) == kNeededOperations &&
      caps.subgroup_size > 1) {
    caps.features |= featureBit(VulkanFeature::kSubgroup);
  }
  caps.full_subgroups = has(kSizeControl) && canRequireFullSubgroups(api, physical);
  if (has(kDot)) {
    readIntegerDot(api, physical, &caps);
  }
  if (has(kFloats)) {
    readFloat16(api, physical, &caps);
  }
  // Some drivers crash at this query.
  bool matrix_extensions = caps.has(VulkanFeature::kFloat16) &&
                           !isKnownFor(VulkanFeature::kCooperativeMatrix) &&
                           !isKnownFor(VulkanFeature::kFloat16);
  for (uint32_t i = kMatrix; i < std::size(names); ++i) {
    matrix_extensions = matrix_extensions && has(i);
  }
  if (matrix_extensions) {
    caps.matrix = findMatrixShape(api, physical, caps.subgroup_size);
  }
  if (caps.matrix.m != 0) {
    caps.features |= featureBit(VulkanFeature::kCooperativeMatrix);
  }
  if (properties.limits.maxTexelBufferElements >= kMaxBindingBytes / 4) {
    caps.features |= featureBit(VulkanFeature::kTexels);
  }
  if (properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) {
    caps.features |= featureBit(VulkanFeature::kRunAhead);
  }
  caps.features |= featureBit(VulkanFeature::kFusedOps);
  caps.features &= ~faults.features_off;
  caps.most_work = faults.most_work;
  std::snprintf(caps.faults, sizeof(caps.faults), "%s", faults.text);
  const bool has_compute = findComputeFamily(api, physical, &caps);
  caps.timestamp_ns = caps.timestamp_bits != 0 ? properties.limits.timestampPeriod : 0;
  explainRefusal(properties.limits, has_compute, &caps);
  if (faults.refused && caps.usable()) {
    std::snprintf(caps.reason, sizeof(caps.reason), "%.*s",
                  static_cast<int>(sizeof(caps.reason)) - 1, faults.text);
  }
  return caps;
}

}  // namespace oriel_internal
