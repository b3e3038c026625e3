// A Vulkan device for Oriel: instance, choice, capabilities, logical device and its one queue.
#pragma once

#include "vulkan/verdict.h"

namespace oriel_internal {

/// Owns everything up to the queue. destroy() is safe at any stage of creation.
struct VulkanDevice {
  SharedLibrary library;
  VulkanApi api;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  DeviceCaps caps = {};
  uint32_t number = 0;  ///< 1 + index in the driver's order
  bool is_shared = false;
  Verdict verdict;  ///< the known facts about it; ExecutorOptions::verdict has priority
  mutable DriverWatch watch;

  /// Loads Vulkan, creates the instance, chooses a device (options.device_number or the best) and creates it.
  /// Logs the reason for each refused device. `skip`: bit i refuses device i; `why` is the reason for the
  /// last refused one.
  Status create(const ExecutorOptions& options, uint32_t skip = 0, const char* why = "");
  /// Uses the device of `other`, which must live longer. `trust_dir`: as in ExecutorOptions.
  void share(const VulkanDevice& other, const char* trust_dir);
  void destroy();

 private:
  Status choose(const ExecutorOptions& options, uint32_t skip, const char* why, uint32_t enabled,
                uint32_t* counted);
  Status createLogical(const Log& log);
};

/// True if `candidate` is the better device. For two drivers of one card, the faster driver wins.
bool isPreferred(const DeviceCaps& candidate, const DeviceCaps& to);

/// Creates an instance; without Vulkan, `device->instance` stays null with status kOk.
Status createInstance(const ExecutorOptions& options, VulkanDevice* device);

/// Maximum number of devices; further ones are ignored.
constexpr uint32_t kMaxPhysicalDevices = 16;

Status enumerateDevices(const VulkanDevice& device, const Log& log,
                        VkPhysicalDevice physical[kMaxPhysicalDevices], uint32_t* count);

}  // namespace oriel_internal
