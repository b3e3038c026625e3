#include "vulkan/loader.h"

namespace oriel_internal {
namespace {

// Names that each system's Vulkan SDK or driver installs.
constexpr const char* kLoaderNames[] = {
#if defined(_WIN32)
    "vulkan-1.dll",
#elif defined(__APPLE__)
    "libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib",
    "@rpath/MoltenVK.framework/MoltenVK",  // embedded in an app
#else
    "libvulkan.so.1",
    "libvulkan.so",
#endif
};

template <typename Function>
bool load(const VulkanApi& api, VkInstance instance, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(api.vkGetInstanceProcAddr(instance, name));
  return *function != nullptr;
}

const char* resultText(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "the driver is out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "the device is out of memory";
    case VK_ERROR_DEVICE_LOST:
      return "the device was lost";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "the driver failed to initialise";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "the driver lacks an extension, feature or layer";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "no driver is compatible";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "the device allows no more objects";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "memory could not be mapped";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
      return "a descriptor pool is exhausted";
    default:
      return "the driver failed";
  }
}

}  // namespace

bool loadGlobalFunctions(SharedLibrary* library, VulkanApi* api) {
  for (const char* name : kLoaderNames) {
    if (library->open(name)) {
      break;
    }
  }
  if (!library->isOpen()) {
    return false;
  }
  api->vkGetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(library->symbol("vkGetInstanceProcAddr"));
  if (api->vkGetInstanceProcAddr == nullptr) {
    return false;
  }
  bool complete = true;
#define ORIEL_LOAD(name) complete = load(*api, nullptr, #name, &api->name) && complete;
  ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_LOAD)
#undef ORIEL_LOAD
  return complete;
}

bool loadInstanceFunctions(VkInstance instance, VulkanApi* api) {
  bool complete = true;
#define ORIEL_LOAD(name) complete = load(*api, instance, #name, &api->name) && complete;
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_LOAD)
#undef ORIEL_LOAD
  (void)load(*api, instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
             &api->cooperativeMatrixProperties);
  return complete;
}

Status checkVk(VkResult result, const char* what, const Log& log) {
  if (result >= 0) {
    return kOk;
  }
  const char* text = resultText(result);
  const int number = static_cast<int>(result);
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "cannot %s, %s (Vulkan result %d): close other programs or give a smaller "
                      "memory budget",
                      what, text, number);
    case VK_ERROR_DEVICE_LOST:
      return log.fail(
          ORIEL_ERROR_DEVICE,
          "cannot %s, %s (Vulkan result %d): call oriel_session_recover, or load the model on the "
          "CPU",
          what, text, number);
    default:
      return log.fail(ORIEL_ERROR_DEVICE,
                      "cannot %s, %s (Vulkan result %d): update the graphics driver or choose "
                      "another device",
                      what, text, number);
  }
}

void readFeatures(const VulkanApi& api, VkPhysicalDevice physical, void* chain) {
  VkPhysicalDeviceFeatures2 features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = chain;
  api.vkGetPhysicalDeviceFeatures2(physical, &features);
}

VkPhysicalDeviceProperties readProperties(const VulkanApi& api, VkPhysicalDevice physical,
                                          void* chain) {
  VkPhysicalDeviceProperties2 properties = {};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = chain;
  api.vkGetPhysicalDeviceProperties2(physical, &properties);
  return properties.properties;
}

}  // namespace oriel_internal
