#include "faults/file_faults.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "vulkan/loader.h"

namespace oriel_internal::test {
namespace {

const OrielVulkanFaults* layer = nullptr;
std::string hidden;
PFN_vkGetInstanceProcAddr real_address = nullptr;
PFN_vkEnumerateInstanceVersion real_version = nullptr;
PFN_vkEnumerateInstanceExtensionProperties real_extensions = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL version(uint32_t* number) {
  const int32_t result = layer->decide("vkEnumerateInstanceVersion");
  return result != 0 ? static_cast<VkResult>(result) : real_version(number);
}

VKAPI_ATTR VkResult VKAPI_CALL extensions(const char* of_layer, uint32_t* count,
                                          VkExtensionProperties* properties) {
  const int32_t result = layer->decide("vkEnumerateInstanceExtensionProperties");
  return result != 0 ? static_cast<VkResult>(result) : real_extensions(of_layer, count, properties);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL address(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = hidden == name ? nullptr : real_address(instance, name);
  if (real != nullptr && std::strcmp(name, "vkEnumerateInstanceVersion") == 0) {
    real_version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(version);
  }
  if (real != nullptr && std::strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0) {
    real_extensions = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(extensions);
  }
  return real;
}

constexpr int kHost = VK_ERROR_OUT_OF_HOST_MEMORY, kDevice = VK_ERROR_OUT_OF_DEVICE_MEMORY,
              kInit = VK_ERROR_INITIALIZATION_FAILED, kLost = VK_ERROR_DEVICE_LOST;

// Where the specification lists more than memory.
const std::map<std::string, std::vector<int>>& special() {
  static const std::map<std::string, std::vector<int>> results = {
      {"vkEnumerateInstanceVersion", {kHost}},
      {"vkEnumerateInstanceExtensionProperties", {kHost, kDevice, VK_ERROR_LAYER_NOT_PRESENT}},
      {"vkCreateInstance", {kHost, kDevice, kInit, VK_ERROR_INCOMPATIBLE_DRIVER}},
      {"vkEnumeratePhysicalDevices", {kHost, kDevice, kInit}},
      {"vkEnumerateDeviceExtensionProperties", {kHost, kDevice, VK_ERROR_LAYER_NOT_PRESENT}},
      {"vkCreateDevice",
       {kHost, kDevice, kInit, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_EXTENSION_NOT_PRESENT, kLost}},
      {"vkAllocateMemory", {kHost, kDevice, VK_ERROR_TOO_MANY_OBJECTS}},
      {"vkMapMemory", {kHost, kDevice, VK_ERROR_MEMORY_MAP_FAILED}},
      {"vkCreateDescriptorPool", {kHost, kDevice, VK_ERROR_FRAGMENTATION}},
      {"vkAllocateDescriptorSets",
       {kHost, kDevice, VK_ERROR_FRAGMENTED_POOL, VK_ERROR_OUT_OF_POOL_MEMORY}},
      {"vkGetPipelineCacheData", {kHost, kDevice, VK_INCOMPLETE}},
      {"vkCreateComputePipelines", {kHost, kDevice, VK_ERROR_INVALID_SHADER_NV}},
      {"vkWaitForFences", {kHost, kDevice, kLost}},
      {"vkQueueSubmit", {kHost, kDevice, kLost}},
  };
  return results;
}

template <typename Function>
struct Returns {
  static constexpr bool kResult = false;
};
template <typename... Arguments>
struct Returns<VkResult(VKAPI_PTR*)(Arguments...)> {
  static constexpr bool kResult = true;
};

VulkanCall callOf(const char* name, bool can_fail) {
  const auto found = special().find(name);
  return {name, found != special().end() ? found->second
                : can_fail               ? std::vector<int>{kHost, kDevice}
                                         : std::vector<int>{}};
}

}  // namespace

const OrielVulkanFaults* loadFaultLayer(const std::string& folder) {
  setenv("VK_ADD_LAYER_PATH", folder.c_str(), 1);
  setenv("VK_INSTANCE_LAYERS", "VK_LAYER_ORIEL_faults", 1);
  setenv("NODEVICE_SELECT", "1", 1);  // Mesa's own layer dies where extensions cannot be listed
  void* const library = dlopen((folder + "/liboriel_fault_layer.so").c_str(), RTLD_NOW);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, "oriel_vulkan_faults");
  if (symbol != nullptr) {
    layer = reinterpret_cast<OrielVulkanFaultsFunction>(symbol)();
  }
  return layer;
}

const OrielVulkanFaults* faultLayer() { return layer; }

void loseAtNextSubmission() { layer->fail("vkQueueSubmit", 1, kLost, 0); }

void hideFunction(const std::string& name) { hidden = name; }

void* watched(const char* name, void* symbol) {
  if (layer == nullptr || symbol == nullptr || std::strcmp(name, "vkGetInstanceProcAddr") != 0) {
    return symbol;
  }
  real_address = reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol);
  return reinterpret_cast<void*>(address);
}

const std::vector<VulkanCall>& vulkanCalls() {
  static const std::vector<VulkanCall> calls = {
#define ORIEL_CALL(name) callOf(#name, Returns<PFN_##name>::kResult),
      ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_CALL) ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_CALL)
#undef ORIEL_CALL
  };
  return calls;
}

std::string nameOfVkResult(int result) {
  switch (result) {
#define ORIEL_NAME(name) \
  case VK_##name:        \
    return #name;
    ORIEL_NAME(INCOMPLETE)
    ORIEL_NAME(ERROR_OUT_OF_HOST_MEMORY)
    ORIEL_NAME(ERROR_OUT_OF_DEVICE_MEMORY)
    ORIEL_NAME(ERROR_INITIALIZATION_FAILED)
    ORIEL_NAME(ERROR_DEVICE_LOST)
    ORIEL_NAME(ERROR_MEMORY_MAP_FAILED)
    ORIEL_NAME(ERROR_LAYER_NOT_PRESENT)
    ORIEL_NAME(ERROR_EXTENSION_NOT_PRESENT)
    ORIEL_NAME(ERROR_INCOMPATIBLE_DRIVER)
    ORIEL_NAME(ERROR_TOO_MANY_OBJECTS)
    ORIEL_NAME(ERROR_FRAGMENTED_POOL)
    ORIEL_NAME(ERROR_OUT_OF_POOL_MEMORY)
    ORIEL_NAME(ERROR_FRAGMENTATION)
    ORIEL_NAME(ERROR_INVALID_SHADER_NV)
#undef ORIEL_NAME
    default:
      return std::to_string(result);
  }
}

}  // namespace oriel_internal::test
