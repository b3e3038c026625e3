// The fault layer (layer/fault_layer.h) of this process, and cases outside layers: functions before an instance exists,
// and missing functions.
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

/// Replaces a symbol that the library looks up.
void* watched(const char* name, void* symbol);

struct VulkanCall {
  std::string name;
  std::vector<int> results;  ///< allowed by its specification; none: cannot fail
};
/// All that the library loads.
const std::vector<VulkanCall>& vulkanCalls();
std::string nameOfVkResult(int result);

}  // namespace oriel_internal::test
