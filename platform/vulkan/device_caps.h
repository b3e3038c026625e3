// Vendor and driver ids (VkDriverId). The oldest supported headers do not have all of them.
#pragma once

#include <cstdint>

#include "exec/host_executor.h"
#include "vulkan/matrix_units.h"

namespace oriel_internal {

namespace vendor {
constexpr uint32_t kAny = 0;
constexpr uint32_t kAmd = 0x1002;
constexpr uint32_t kImagination = 0x1010;
constexpr uint32_t kApple = 0x106B;
constexpr uint32_t kNvidia = 0x10DE;
constexpr uint32_t kArm = 0x13B5;
constexpr uint32_t kSamsung = 0x144D;
constexpr uint32_t kBroadcom = 0x14E4;
constexpr uint32_t kQualcomm = 0x5143;
constexpr uint32_t kIntel = 0x8086;
constexpr uint32_t kMesa = 0x10005;  ///< for example of Apple GPUs
}  // namespace vendor

namespace driver {
constexpr uint32_t kAny = 0;
constexpr uint32_t kAmdProprietary = 1;
constexpr uint32_t kAmdOpenSource = 2;
constexpr uint32_t kRadv = 3;
constexpr uint32_t kNvidiaProprietary = 4;
constexpr uint32_t kIntelMesa = 6;
constexpr uint32_t kImaginationProprietary = 7;
constexpr uint32_t kQualcommProprietary = 8;
constexpr uint32_t kMoltenVk = 14;
constexpr uint32_t kTurnip = 18;
constexpr uint32_t kV3d = 19;
constexpr uint32_t kSamsungProprietary = 21;
constexpr uint32_t kDozen = 23;
constexpr uint32_t kNvk = 24;
}  // namespace driver

// Capabilities that a physical device reports, corrected for known faults.

/// The capabilities of a physical device that the executor uses or reports.
struct DeviceCaps {
  char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
  char driver[256];
  char reason[256];  ///< reason for a refusal; empty: usable
  VkPhysicalDeviceType type;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint32_t driver_id;  ///< VkDriverId; 0: not reported
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
  uint8_t device_uuid[VK_UUID_SIZE];
  uint32_t compute_family;
  bool needs_portability_subset;
  bool creation_feedback;  ///< reports if a pipeline came from the cache
  uint32_t features;       ///< featureBit()s of the device, minus those turned off
  bool fast_integer_dot;   ///< the driver calls packed dot products accelerated
  uint32_t subgroup_size;  ///< as reported; 1 if invalid; actual subgroups may be narrower
  uint32_t most_lanes;     ///< of a workgroup
  bool full_subgroups;     ///< a pipeline may require subgroups without idle lanes
  MatrixShape matrix;      ///< of kCooperativeMatrix
  uint64_t max_allocation_bytes;
  uint64_t non_coherent_atom_bytes;  ///< granularity of flushes and invalidations of such memory
  uint64_t memory_bytes;             ///< of the largest device-local heap
  uint64_t free_bytes;               ///< free part of that heap, without paging; 0: not reported
  char faults[320];                  ///< known faults, as text for people (known_devices.h); ""
  double most_work;                  ///< limit of a submission, as plan/op.h counts; 0: no limit

  float timestamp_ns;  ///< duration of a timestamp tick in ns; 0: no timestamps
  uint32_t timestamp_bits;

  bool divide_as_gpu;  ///< tests only: divide work as on a GPU, on any device

  bool has(VulkanFeature feature) const { return (features & featureBit(feature)) != 0; }
  bool usable() const { return reason[0] == '\0'; }
  bool isSoftware() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU && !divide_as_gpu; }
  /// True for a GPU with memory of its own. It needs many loads in flight.
  bool isDiscrete() const {
    return type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || (divide_as_gpu && !isSoftware());
  }
  /// True if kernels read weights, inputs and caches as texels: see texel_views.h.
  bool readsTexels() const { return isSoftware() && has(VulkanFeature::kTexels); }
};

/// `enabled`: readOverrideNames(), features used despite known faults.
DeviceCaps readDeviceCaps(const VulkanApi& api, VkPhysicalDevice physical, uint32_t enabled = 0);
/// Lists the features in `caps.features` that kernels can use, as text for people.
void describeFeatures(const DeviceCaps& caps, char* text, size_t capacity);
/// Limits, memory types and queue families as the driver reports them, in one line.
void describeLimits(const VulkanApi& api, VkPhysicalDevice physical, const DeviceCaps& caps,
                    char* text, size_t capacity);
/// "discrete", as in DeviceInfo.
const char* kindName(VkPhysicalDeviceType type);
/// Bit i is set if the device has extension names[i]; without a device, the instance.
uint32_t findExtensions(const VulkanApi& api, VkPhysicalDevice physical, const char* const* names,
                        uint32_t count);

constexpr const char* kPortabilitySubset = "VK_KHR_portability_subset";
constexpr const char* kCreationFeedback = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
constexpr const char* kIntegerDotProduct = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
constexpr const char* kFloat16Int8 = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME;

}  // namespace oriel_internal
