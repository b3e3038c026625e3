// Runs plans with Vulkan compute.
#pragma once

#include "base/descriptions.h"
#include "exec/executor.h"

namespace oriel_internal {

/// Finds the loader at run time, chooses a device (discrete, integrated, virtual, software; or
/// options.device_number), and takes the plan's arenas. ORIEL_ERROR_NO_DEVICE, with the reason for each
/// refused device in the log, if none is usable.
Status createVulkanExecutor(const Plan& plan, const ExecutorOptions& options,
                            const ExecutorMemory& memory, Executor** executor);

/// See oriel_device_describe; lists Vulkan devices only. Uses the options with known faults and disabled features.
Status listVulkanDevices(const ExecutorOptions& options, DeviceInfo* devices, size_t capacity,
                         size_t* needed);
/// See oriel_device_describe(ORIEL_DEVICE_FORGET).
uint32_t forgetVulkanDevices(const char* dir, uint32_t* left);

}  // namespace oriel_internal
