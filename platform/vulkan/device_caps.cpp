#include "vulkan/device_caps.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "shaders/shared/layout.h"
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

namespace {

constexpr uint32_t kAny = UINT32_MAX;
constexpr KernelOrder kFloats = {{MatmulKernel::kFloat}};
constexpr KernelOrder kUnits = {{MatmulKernel::kMatrix, MatmulKernel::kDot}};
/// GPUs that multiply halves faster than floats, and whose registers hold few floats.
constexpr KernelOrder kHalves = {{MatmulKernel::kMatrix, MatmulKernel::kDot, MatmulKernel::kHalf}};

/// Measured on lavapipe (2 cores, subgroups of 8). A team of its own reads its rows as streams: twice
/// the speed of alternating teams if a matrix is larger than the caches. 8 rows gain up to a quarter
/// over 4, but leave too few workgroups for small matrices.
constexpr MatmulShape kSoftware = {8, 8, 8, 4};
constexpr MatmulShape kSmallSoftware = {8, 8, 4, 4};
/// A lane holds a whole head: lanes of a CPU's vector have no fast exchange, and its
/// compiler takes too long with more values.
constexpr DeviceShapes kSoftwareShapes = {
    vendor::kAny,           "", kSoftware, kSoftware, kSmallSoftware, {kAny, 16, 16, 32}, kFloats,
    {8, 8, 8, {1, 1, 1}, 0}};

/// GPUs have more lanes than a matrix has rows to fill.
constexpr MatmulShape kOneRow = {64, kGroupRows, 1, 1};
constexpr MatmulShape kRows2Tokens8 = {64, kGroupRows, 2, 8};
constexpr MatmulShape kRow1Tokens4 = {64, kGroupRows, 1, 4};
constexpr MatmulShape kRow1Tokens2 = {64, kGroupRows, 1, 2};

struct MostSums {
  uint32_t dot;
  uint32_t half;
  uint32_t matrix;
};

constexpr DeviceShapes gpu(uint32_t vendor_id, const char* name_part, const MatmulShape& chunk,
                           const MostSums& most, const KernelOrder& order, uint32_t narrow,
                           uint32_t wide, uint32_t widest, uint32_t widest_on_units = 0) {
  // Neighbouring lanes read neighbouring pieces.
  return {vendor_id, name_part,
          kOneRow,   chunk,
          chunk,     {kAny, most.dot, most.half, most.matrix},
          order,     {128, 1, 16, {narrow, wide, widest}, widest_on_units}};
}

// The first matching row applies. Checked with Mesa 26.1: AMD, NVIDIA, Qualcomm, Apple (tests/compilers/bounds.json);
// set by hand: Intel and Arm. The last row is for devices without a checked compiler.
constexpr DeviceShapes kGpuShapes[] = {
    gpu(vendor::kAmd, "VEGA", kRow1Tokens4, {16, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kAmd, "POLARIS", kRow1Tokens4, {16, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kAmd, "", kRows2Tokens8, {16, 32, 64}, kUnits, 4, 2, 2, 128),
    gpu(vendor::kSamsung, "", kRows2Tokens8, {16, 32, 32}, kUnits, 4, 2, 2),
    gpu(vendor::kNvidia, "", kRows2Tokens8, {16, 16, 64}, kUnits, 4, 2, 2, 128),
    gpu(vendor::kQualcomm, "(TM) 6", kRow1Tokens2, {4, 4, 32}, kUnits, 1, 1, 1),
    gpu(vendor::kQualcomm, "", kRow1Tokens4, {16, 16, 32}, kHalves, 2, 1, 1),
    gpu(vendor::kApple, "", kRow1Tokens4, {4, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kMesa, "Apple", kRow1Tokens4, {4, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kIntel, "", kRow1Tokens4, {8, 16, 32}, kUnits, 2, 1, 1),
    gpu(vendor::kArm, "", kRow1Tokens4, {8, 16, 32}, kHalves, 1, 1, 1),
    gpu(vendor::kAny, "", kRow1Tokens4, {8, 16, 32}, kUnits, 1, 1, 1),
};
/// Tests divide the work of software devices like this: the largest division of any GPU.
constexpr const DeviceShapes& kLargest = kGpuShapes[2];

constexpr bool fitsSharedMemory(const MatmulShape& shape) {
  return shape.lanes * shape.rows * shape.tokens * sizeof(float) <= 16384;
}
constexpr bool fitSharedMemory() {
  bool fit = fitsSharedMemory(kSoftwareShapes.decode);
  for (const DeviceShapes& shapes : kGpuShapes) {
    fit = fit && fitsSharedMemory(shapes.decode) && fitsSharedMemory(shapes.chunk);
  }
  return fit;
}
static_assert(fitSharedMemory(), "matmul's partial sums");

}  // namespace

const DeviceShapes& shapesOf(const DeviceCaps& caps) {
  if (caps.isSoftware()) {
    return kSoftwareShapes;
  }
  if (caps.divide_as_gpu && caps.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    return kLargest;
  }
  return *std::find_if(
      std::begin(kGpuShapes), std::end(kGpuShapes) - 1, [&caps](const DeviceShapes& row) {
        return (row.vendor_id == vendor::kAny || row.vendor_id == caps.vendor_id) &&
               std::strstr(caps.name, row.name_part) != nullptr;
      });
}

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

namespace {

constexpr VkPhysicalDeviceType kAnyType = VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM;
constexpr VkPhysicalDeviceType kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr uint32_t kLast = UINT32_MAX;

constexpr uint32_t kMatrix = featureBit(VulkanFeature::kCooperativeMatrix);
constexpr uint32_t kHalf = featureBit(VulkanFeature::kFloat16);
constexpr uint32_t kDot = featureBit(VulkanFeature::kIntegerDot);
constexpr uint32_t kSubgroupSums = featureBit(VulkanFeature::kSubgroup);

/// The initial limit of a submission (exec/running_call.h), which then never grows.
constexpr double kShortSubmission = 1 << 25;

constexpr const char* kNoUnits = "the driver claims matrix units that the device does not have";
constexpr const char* kNoUnitsSource = "llama.cpp#11074";
constexpr const char* kAsking = "the driver crashes when it is asked about its matrix units";
constexpr const char* kAskingSource = "llama.cpp#22750, AMDVLK#422";

}  // namespace

const KnownDevice kKnownDevices[] = {
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "", 0, kLast, kMatrix, 0, false,
     "unrolled tiles of matrix units break", "ncnn#6719, ncnn#6972"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "", 0, kLast, 0, kShortSubmission,
     false, "the driver gives long submissions up", "flutter-engine#54846"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "X2-", 0, kLast, kDot, 0, false,
     "packed integer dot products come out wrong", "ggml#1601"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "Adreno (TM) 830", 0, kLast,
     kSubgroupSums, 0, false, "kernels that sum over subgroups do not compile", "llama.cpp#28635"},
    {vendor::kQualcomm, driver::kQualcommProprietary, kAnyType, "Adreno (TM) 750", 0, kLast,
     kSubgroupSums, 0, false, "kernels that sum over subgroups do not compile", "llama.cpp#29165"},
    {vendor::kBroadcom, driver::kV3d, kAnyType, "", 0, kLast, 0, 0, true,
     "products take minutes to compile and keep their values in memory",
     "Mesa 26.1 for V3D 4.2: one product, 49 s"},
    {vendor::kAny, driver::kDozen, kAnyType, "", 0, kLast, 0, 0, true,
     "Direct3D 12 behind Vulkan, which this library was never run on", "Mesa calls it incomplete"},
    {vendor::kIntel, driver::kIntelMesa, kIntegrated, "(TGL", 0, kLast, kDot, 0, false,
     "text comes out garbled since packed integer dot products are used",
     "llama.cpp#17106, llama.cpp#17056"},
    {vendor::kAmd, driver::kAmdProprietary, kIntegrated, "", 0, kLast, kMatrix, 0, false, kAsking,
     kAskingSource},
    {vendor::kAmd, driver::kAmdOpenSource, kIntegrated, "", 0, kLast, kMatrix, 0, false, kAsking,
     kAskingSource},
    {vendor::kAmd, driver::kAmdProprietary, kAnyType, "RX 5", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdProprietary, kAnyType, "RX 6", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdOpenSource, kAnyType, "RX 5", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kAmdOpenSource, kAnyType, "RX 6", 0, kLast, kMatrix, 0, false, kNoUnits,
     kNoUnitsSource},
    {vendor::kAmd, driver::kMoltenVk, kAnyType, "", 0, kLast, kSubgroupSums, 0, false,
     "subgroups are said to be larger than they are", "llama.cpp#20029, llama.cpp#15846"},
    {vendor::kAny, driver::kIntelMesa, kAnyType, "", 0, kLast, kHalf, 0, false,
     "matrix products in half precision come out wrong", "llama.cpp#18814, llama.cpp#17106"},
    {vendor::kImagination, driver::kImaginationProprietary, kAnyType, "", 0, kLast, kMatrix | kDot,
     0, false, "products with matrix units or packed dot products come out wrong",
     "llama.cpp#28502"},
    {vendor::kSamsung, driver::kSamsungProprietary, kAnyType, "", 0, kLast, kMatrix, 0, false,
     "loops around matrix units crash or come out wrong", "workarounds in ncnn"},
};
const uint32_t kKnownDeviceCount = sizeof(kKnownDevices) / sizeof(kKnownDevices[0]);

bool matches(const KnownDevice& row, const DeviceCaps& caps) {
  return (row.vendor_id == vendor::kAny || row.vendor_id == caps.vendor_id) &&
         (row.driver_id == driver::kAny || row.driver_id == caps.driver_id) &&
         (row.type == kAnyType || row.type == caps.type) &&
         std::strstr(caps.name, row.name_part) != nullptr &&
         caps.driver_version >= row.first_driver && caps.driver_version <= row.last_driver;
}

KnownFaults findFaults(const KnownDevice* rows, uint32_t count, const DeviceCaps& caps,
                       uint32_t enabled) {
  KnownFaults faults;
  for (uint32_t i = 0; i < count; ++i) {
    const KnownDevice& row = rows[i];
    if (!matches(row, caps)) {
      continue;
    }
    const uint32_t off = row.features_off & ~enabled;
    const bool refused = row.refused && (enabled >> kDeviceItself & 1u) == 0;
    const bool bound = row.most_work != 0 && (enabled >> kLongSubmissions & 1u) == 0;
    if (off == 0 && !refused && !bound) {
      continue;
    }
    faults.features_off |= off;
    faults.refused = faults.refused || refused;
    if (bound) {
      faults.most_work =
          faults.most_work == 0 ? row.most_work : std::min(faults.most_work, row.most_work);
    }
    char what[128];
    writeFeatureNames(off, what, sizeof(what));
    if (bound) {
      appendToList(kOverrideNames[0], what, sizeof(what));
    }
    if (refused) {
      appendToList("the whole device", what, sizeof(what));
    }
    const size_t used = std::strlen(faults.text);
    std::snprintf(faults.text + used, sizeof(faults.text) - used, "%s%s off: %s (%s)",
                  used == 0 ? "" : "; ", what, row.reason, row.source);
  }
  return faults;
}

}  // namespace oriel_internal
