// A Vulkan device fit for Oriel: instance, choice, capabilities, logical device and its one queue.
#pragma once

#include "exec/features.h"
#include "vulkan/matrix_units.h"

namespace oriel {

/// What is known of a physical device. Only what the executor acts on or reports.
struct DeviceCaps {
  char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
  char driver[256];
  char reason[256];  ///< why it is refused; empty: usable
  VkPhysicalDeviceType type;
  uint32_t vendor_id;
  uint32_t device_id;
  uint32_t driver_version;
  uint8_t pipeline_cache_uuid[VK_UUID_SIZE];
  uint8_t device_uuid[VK_UUID_SIZE];
  uint32_t compute_family;
  bool needs_portability_subset;
  bool creation_feedback;  ///< says whether a pipeline came from the cache
  uint32_t features;       ///< featureBit()s of what it has, less what was turned off
  bool fast_integer_dot;   ///< the driver calls packed dot products accelerated
  uint32_t subgroup_size;  ///< as declared; a driver may run narrower ones
  MatrixShape matrix;      ///< of kCooperativeMatrix
  uint64_t max_allocation_bytes;
  uint64_t memory_bytes;  ///< of the largest device-local heap

  bool divide_as_gpu;  ///< tests only: whatever the device is, work is divided as on a GPU

  bool has(VulkanFeature feature) const { return (features & featureBit(feature)) != 0; }
  bool usable() const { return reason[0] == '\0'; }
  bool isSoftware() const { return type == VK_PHYSICAL_DEVICE_TYPE_CPU && !divide_as_gpu; }
  /// Whether kernels read weights, inputs and caches as texels: see texel_views.h.
  bool readsTexels() const { return isSoftware() && has(VulkanFeature::kTexels); }
};

/// Owns everything up to the queue. destroy() is safe at any stage of creation.
struct VulkanDevice {
  SharedLibrary library;
  VulkanApi api;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  DeviceCaps caps = {};

  /// Loader, instance, choice of a device (options.device_number or the best) and the device itself.
  /// Logs why each device it could not take was refused.
  Status create(const ExecutorOptions& options);
  void destroy();
};

/// Creates an instance; `device->instance` stays null, and the status kOk, where there is no Vulkan.
Status createInstance(const ExecutorOptions& options, VulkanDevice* device);

/// Devices that are looked at; further ones are ignored.
constexpr uint32_t kMaxPhysicalDevices = 16;

Status enumerateDevices(const VulkanDevice& device, const Log& log,
                        VkPhysicalDevice physical[kMaxPhysicalDevices], uint32_t* count);
/// What of `caps.features` kernels can use, for people.
void describeFeatures(const DeviceCaps& caps, char* text, size_t capacity);
DeviceCaps readDeviceCaps(const VulkanApi& api, VkPhysicalDevice physical);

}  // namespace oriel
