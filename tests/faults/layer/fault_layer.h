// Orders to the fault layer, a Vulkan layer for tests (VK_LAYER_ORIEL_faults): failing Vulkan calls, the device's
// memory, the duration of its work. And the layer's observations.
//
// The layer knows the functions that Oriel loads (vulkan/loader.h). A program that loads the layer's library itself,
// before Vulkan does, finds oriel_vulkan_faults() in it by dlsym(); its orders and results persist across instances.
// Other programs use the environment:
//
//   ORIEL_FAULTS        orders, separated by spaces:
//                         vkQueueSubmit@3=-4     the third call returns VK_ERROR_DEVICE_LOST
//                         vkQueueSubmit@3+=-2    and all that follow return VK_ERROR_OUT_OF_DEVICE_MEMORY
//                         memory=100000000       bytes that the device has
//                         fences=50              milliseconds that a submission takes at least
//                         dirt=255               fill byte of new host-visible memory
//                       and limits of other devices:
//                         types=1,b              property flags of its memory types, in hexadecimal. Memory that is not
//                                                coherent is a copy until it is flushed or invalidated.
//                         padding=65536          bytes that a buffer needs on top of its own
//                         allocation=1000000     bytes of an allocation at most
//                         families=f,e           flags of its queue families, in hexadecimal
//                         budget=1000000         bytes of its first heap that are free (VK_EXT_memory_budget)
//                         ticks=0                bits of timestamps of its queues, with families=
//                         kind=2                 what it is (VkPhysicalDeviceType): 2 is a card
//                         subgroup=0             lanes of a subgroup, as it reports them
//   ORIEL_FAULTS_WHEN   a file: calls are counted, and fail, while it is there
//   ORIEL_FAULTS_REPORT a file: what is wrong with objects is written behind what it holds; with families= also
//                       "uses family N"
//
// A device that a call has found lost stays lost: everything that can say so says so, until it is destroyed.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct OrielVulkanFaults {
  /// Counts begin anew, all orders are taken back. Objects that are there stay known.
  void (*clear)(void);
  /// The `nth` call of a function from now on, counted from 1, returns `result` instead of being made; with
  /// `from_then_on` those after it, too.
  void (*fail)(const char* function, uint64_t nth, int32_t result, int from_then_on);
  /// 0: as many as it has.
  void (*capMemory)(uint64_t bytes);
  /// A submission takes at least this many milliseconds.
  void (*delayFences)(uint32_t milliseconds);

  /// Calls since clear(), those included that failed.
  uint64_t (*calls)(const char* function);
  /// visit(function, calls, user) for each function that was called.
  void (*visit)(void (*visit)(const char* function, uint64_t calls, void* user), void* user);
  /// Calls that returned an ordered result, or that a device was lost.
  uint64_t (*failed)(void);
  /// Instances, devices and their objects that are there now.
  uint64_t (*objects)(void);
  /// New lines since the last call: objects left when their device or instance was destroyed, handles never given out or
  /// destroyed twice. "" if nothing was wrong. Valid until the next call.
  const char* (*complaints)(void);
  /// For functions that layers cannot intercept, called by their wrapper: the result to return, or 0.
  int32_t (*decide)(const char* function);
};

typedef const struct OrielVulkanFaults* (*OrielVulkanFaultsFunction)(void);

#ifdef __cplusplus
}
#endif
