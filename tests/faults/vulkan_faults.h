// The fault layer (layer/fault_layer.h) of this process, and what no layer sees: functions that exist before an
// instance does, and functions that are not there.
#pragma once

#include <string>
#include <vector>

#include "faults/layer/fault_layer.h"

namespace oriel_internal::test {

/// Loads the layer's library and lets the loader of Vulkan find it; before Vulkan is used. Null: it cannot be loaded.
const OrielVulkanFaults* loadFaultLayer(const std::string& folder);
/// The layer that loadFaultLayer() loaded, or null.
const OrielVulkanFaults* faultLayer();

/// The device is lost when something is sent to it, until clear().
void loseAtNextSubmission();

/// vkGetInstanceProcAddr does not know this function; "": it knows all.
void hideFunction(const std::string& name);

/// What the library is given for a symbol that it looks up.
void* watched(const char* name, void* symbol);

struct VulkanCall {
  std::string name;
  std::vector<int> results;  ///< that its specification allows; none: it cannot fail
};
/// All that the library loads.
const std::vector<VulkanCall>& vulkanCalls();
std::string nameOfVkResult(int result);

}  // namespace oriel_internal::test
