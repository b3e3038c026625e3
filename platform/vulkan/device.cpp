#include "vulkan/device.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/limits.h"
#include "vulkan/shader_table.h"
#include "vulkan/vulkan_executor.h"

namespace oriel {
namespace {

// Extensions looked through, of the instance and of a device: real ones have 20 and 230. Stack space.
constexpr uint32_t kMaxExtensions = 320;

// What every kernel takes for granted (the Vulkan minimum is named where it would not do).
constexpr uint32_t kNeededStorageBuffers = kMaxOpBindings;  // minimum 4
constexpr uint32_t kNeededInvocations = 128;
constexpr uint32_t kNeededSharedBytes = 16384;
constexpr uint32_t kNeededPushBytes = 64;

constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";
constexpr const char* kCreationFeedback = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
constexpr const char* kIntegerDotProduct = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
constexpr const char* kFloat16Int8 = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME;
constexpr const char* kPortabilityEnumeration = "VK_KHR_portability_enumeration";
constexpr VkInstanceCreateFlags kEnumeratePortability = 1;  // not in headers before 1.3.207

bool hasExtension(const VkExtensionProperties* extensions, uint32_t count, const char* name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(extensions[i].extensionName, name) == 0) {
      return true;
    }
  }
  return false;
}

// The first queue family that can compute.
bool findComputeFamily(const VulkanApi& api, VkPhysicalDevice physical, uint32_t* family) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  api.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t i = 0; i < count; ++i) {
    if (families[i].queueCount > 0 && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
      *family = i;
      return true;
    }
  }
  return false;
}

uint64_t largestLocalHeap(const VulkanApi& api, VkPhysicalDevice physical) {
  VkPhysicalDeviceMemoryProperties memory;
  api.vkGetPhysicalDeviceMemoryProperties(physical, &memory);
  uint64_t largest = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0 && heap.size > largest) {
      largest = heap.size;
    }
  }
  return largest;
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

// Higher is better.
int preference(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 1;
    default:
      return 0;
  }
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

void wrapApi(const ExecutorOptions& options, VulkanApi* api) {
  if (options.driver_tap != nullptr) {
    static_cast<const VulkanDriverTap*>(options.driver_tap)->wrap(api);
  }
}

}  // namespace

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

DeviceCaps readDeviceCaps(const VulkanApi& api, VkPhysicalDevice physical) {
  DeviceCaps caps = {};
  VkPhysicalDeviceProperties properties;
  api.vkGetPhysicalDeviceProperties(physical, &properties);
  std::snprintf(caps.name, sizeof(caps.name), "%s", properties.deviceName);
  std::snprintf(caps.driver, sizeof(caps.driver), "version 0x%x", properties.driverVersion);
  caps.type = properties.deviceType;
  caps.vendor_id = properties.vendorID;
  caps.device_id = properties.deviceID;
  caps.driver_version = properties.driverVersion;
  std::memcpy(caps.pipeline_cache_uuid, properties.pipelineCacheUUID, VK_UUID_SIZE);
  caps.memory_bytes = largestLocalHeap(api, physical);
  if (properties.apiVersion < VK_API_VERSION_1_1) {
    std::snprintf(caps.reason, sizeof(caps.reason), "it has Vulkan %u.%u, 1.1 needed",
                  VK_API_VERSION_MAJOR(properties.apiVersion),
                  VK_API_VERSION_MINOR(properties.apiVersion));
    return caps;
  }

  VkExtensionProperties extensions[kMaxExtensions];
  uint32_t n_extensions = kMaxExtensions;
  if (api.vkEnumerateDeviceExtensionProperties(physical, nullptr, &n_extensions, extensions) < 0) {
    n_extensions = 0;
  }
  caps.needs_portability_subset = hasExtension(extensions, n_extensions, kPortabilitySubset);
  caps.creation_feedback = hasExtension(extensions, n_extensions, kCreationFeedback);

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
  const bool names_driver =
      hasExtension(extensions, n_extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME);
  if (names_driver) {
    subgroup.pNext = &driver;
  }
  (void)readProperties(api, physical, &id);
  if (names_driver) {
    std::snprintf(caps.driver, sizeof(caps.driver), "%.120s%s%.120s", driver.driverName,
                  driver.driverInfo[0] != '\0' ? " " : "", driver.driverInfo);
  }
  std::memcpy(caps.device_uuid, id.deviceUUID, VK_UUID_SIZE);
  caps.max_allocation_bytes = maintenance.maxMemoryAllocationSize;
  constexpr VkSubgroupFeatureFlags kNeededOperations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  caps.subgroup_size = subgroup.subgroupSize;
  if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      (subgroup.supportedOperations & kNeededOperations) == kNeededOperations &&
      subgroup.subgroupSize > 1) {
    caps.features |= featureBit(VulkanFeature::kSubgroup);
  }
  if (hasExtension(extensions, n_extensions, kIntegerDotProduct)) {
    readIntegerDot(api, physical, &caps);
  }
  if (hasExtension(extensions, n_extensions, kFloat16Int8)) {
    readFloat16(api, physical, &caps);
  }
  bool matrix_extensions = kHasMatrixKernels && caps.has(VulkanFeature::kFloat16);
  for (const char* name : kMatrixExtensions) {
    matrix_extensions = matrix_extensions && hasExtension(extensions, n_extensions, name);
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
  const bool has_compute = findComputeFamily(api, physical, &caps.compute_family);
  explainRefusal(properties.limits, has_compute, &caps);
  return caps;
}

Status createInstance(const ExecutorOptions& options, VulkanDevice* device) {
  VulkanApi* api = &device->api;
  if (!loadGlobalFunctions(&device->library, api)) {
    options.log.write(ORIEL_LOG_DEBUG, "no Vulkan 1.1 loader on this system");
    return kOk;
  }
  wrapApi(options, api);
  uint32_t version = VK_API_VERSION_1_0;
  if (api->vkEnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_1) {
    options.log.write(ORIEL_LOG_DEBUG, "the Vulkan loader is older than 1.1");
    return kOk;
  }
  VkExtensionProperties extensions[kMaxExtensions];
  uint32_t n_extensions = kMaxExtensions;
  if (api->vkEnumerateInstanceExtensionProperties(nullptr, &n_extensions, extensions) < 0) {
    n_extensions = 0;
  }

  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "Oriel";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (hasExtension(extensions, n_extensions, kPortabilityEnumeration)) {
    info.flags = kEnumeratePortability;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &kPortabilityEnumeration;
  }
  const VkResult result = api->vkCreateInstance(&info, nullptr, &device->instance);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    device->instance = VK_NULL_HANDLE;
    options.log.write(ORIEL_LOG_DEBUG, "no Vulkan driver on this system");
    return kOk;
  }
  ORIEL_TRY(checkMade(result, &device->instance, "create a Vulkan instance", options.log));
  if (!loadInstanceFunctions(device->instance, api)) {
    return options.log.fail(ORIEL_ERROR_NO_DEVICE,
                            "the Vulkan loader lacks a function of Vulkan 1.1: update it");
  }
  wrapApi(options, api);
  return kOk;
}

Status enumerateDevices(const VulkanDevice& device, const Log& log,
                        VkPhysicalDevice physical[kMaxPhysicalDevices], uint32_t* count) {
  *count = 0;
  if (device.instance == VK_NULL_HANDLE) {
    return kOk;
  }
  *count = kMaxPhysicalDevices;
  const VkResult result = device.api.vkEnumeratePhysicalDevices(device.instance, count, physical);
  if (result < 0) {
    *count = 0;
  }
  if (result == VK_ERROR_INITIALIZATION_FAILED) {
    return kOk;  // loaders say so when no driver finds its hardware
  }
  return checkVk(result, "list Vulkan devices", log);
}

Status VulkanDevice::create(const ExecutorOptions& options) {
  const Log& log = options.log;
  uint32_t disabled = 0;
  ORIEL_TRY(readFeatureNames(options.disabled_features, log, &disabled));
  ORIEL_TRY(createInstance(options, this));
  VkPhysicalDevice all[kMaxPhysicalDevices];
  uint32_t count = 0;
  ORIEL_TRY(enumerateDevices(*this, log, all, &count));
  if (options.device_number > count) {
    return log.fail(
        ORIEL_ERROR_NO_DEVICE,
        "there is no Vulkan device %u (counted from 0), %u found: choose one that the list "
        "of devices shows",
        options.device_number - 1, count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (options.device_number != 0 && options.device_number != i + 1) {
      continue;
    }
    const DeviceCaps candidate = readDeviceCaps(api, all[i]);
    if (!candidate.usable()) {
      log.write(ORIEL_LOG_WARNING, "Vulkan device %u (%s) is not usable: %s", i + 1, candidate.name,
                candidate.reason);
    } else if (options.not_software && candidate.isSoftware()) {
      log.write(ORIEL_LOG_INFO, "Vulkan device %u (%s) is this processor: used only when asked for",
                i + 1, candidate.name);
    } else if (physical == VK_NULL_HANDLE || preference(candidate.type) > preference(caps.type)) {
      physical = all[i];
      caps = candidate;
    }
  }
  if (physical == VK_NULL_HANDLE && options.device_is_optional) {
    log.write(ORIEL_LOG_INFO, "no usable Vulkan device (%u found)", count);
    return ORIEL_ERROR_NO_DEVICE;
  }
  if (physical == VK_NULL_HANDLE) {
    return log.fail(ORIEL_ERROR_NO_DEVICE,
                    "no usable Vulkan device (%u found): install a driver or use the CPU", count);
  }
  caps.features &= ~disabled;
  if (!caps.has(VulkanFeature::kFloat16)) {
    caps.features &= ~featureBit(VulkanFeature::kCooperativeMatrix);
  }
  caps.divide_as_gpu = options.divide_as_gpu;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue_info = {};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = caps.compute_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  const char* extensions[4 + kMatrixExtensionCount];
  info.ppEnabledExtensionNames = extensions;
  if (caps.needs_portability_subset) {
    extensions[info.enabledExtensionCount++] = kPortabilitySubset;
  }
  if (caps.creation_feedback) {
    extensions[info.enabledExtensionCount++] = kCreationFeedback;
  }
  VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR;
  dot.shaderIntegerDotProduct = VK_TRUE;
  if (caps.has(VulkanFeature::kIntegerDot)) {
    extensions[info.enabledExtensionCount++] = kIntegerDotProduct;
    info.pNext = &dot;
  }
  VkPhysicalDeviceShaderFloat16Int8FeaturesKHR half = {};
  half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR;
  half.shaderFloat16 = VK_TRUE;
  if (caps.has(VulkanFeature::kFloat16)) {
    extensions[info.enabledExtensionCount++] = kFloat16Int8;
    half.pNext = const_cast<void*>(info.pNext);
    info.pNext = &half;
  }
  MatrixFeatures matrices;
  if (caps.has(VulkanFeature::kCooperativeMatrix)) {
    for (const char* name : kMatrixExtensions) {
      extensions[info.enabledExtensionCount++] = name;
    }
    // Known to be there; asked for once more rather than spelled out once more.
    readFeatures(api, physical, matrices.chain(nullptr));
    (void)matrices.keepNeeded();
    info.pNext = matrices.chain(const_cast<void*>(info.pNext));
  }
  ORIEL_TRY(checkMade(api.vkCreateDevice(physical, &info, nullptr, &device), &device,
                      "create a Vulkan device", log));
  api.vkGetDeviceQueue(device, caps.compute_family, 0, &queue);
  return kOk;
}

void VulkanDevice::destroy() {
  if (device != VK_NULL_HANDLE) {
    api.vkDestroyDevice(device, nullptr);
  }
  if (instance != VK_NULL_HANDLE && api.vkDestroyInstance != nullptr) {
    api.vkDestroyInstance(instance, nullptr);
  }
  device = VK_NULL_HANDLE;
  instance = VK_NULL_HANDLE;
}

Status listVulkanDevices(const Log& log, oriel_device_info* devices, size_t capacity,
                         size_t* needed) {
  *needed = 0;
  ExecutorOptions options;
  options.log = log;
  VulkanDevice device;
  VkPhysicalDevice physical[kMaxPhysicalDevices];
  uint32_t count = 0;
  Status status = createInstance(options, &device);
  if (status.ok()) {
    status = enumerateDevices(device, log, physical, &count);
  }
  *needed = count;
  if (status.ok() && count > capacity) {
    status = ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  for (uint32_t i = 0; status.ok() && i < count; ++i) {
    const DeviceCaps caps = readDeviceCaps(device.api, physical[i]);
    oriel_device_info* info = &devices[i];
    std::snprintf(info->name, sizeof(info->name), "%s", caps.name);
    std::snprintf(info->driver, sizeof(info->driver), "%s", caps.driver);
    std::snprintf(info->kind, sizeof(info->kind), "%s", kindName(caps.type));
    describeFeatures(caps, info->features, sizeof(info->features));
    std::snprintf(info->reason, sizeof(info->reason), "%s", caps.reason);
    info->usable = caps.usable() ? 1 : 0;
    info->memory_bytes = caps.memory_bytes;
  }
  device.destroy();
  return status;
}

}  // namespace oriel
