/* A Vulkan loader whose drivers do not work: what a machine with a half-installed driver has. */
#include <stddef.h>
#include <string.h>
#include <vulkan/vulkan.h>

static VkResult VKAPI_CALL version(uint32_t* number) {
  *number = VK_API_VERSION_1_1;
  return VK_SUCCESS;
}

static VkResult VKAPI_CALL extensions(const char* layer, uint32_t* count,
                                      VkExtensionProperties* properties) {
  (void)layer;
  (void)properties;
  *count = 0;
  return VK_SUCCESS;
}

static VkResult VKAPI_CALL create(const VkInstanceCreateInfo* info,
                                  const VkAllocationCallbacks* allocator, VkInstance* instance) {
  (void)info;
  (void)allocator;
  *instance = VK_NULL_HANDLE;
  return VK_ERROR_INITIALIZATION_FAILED;
}

PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  (void)instance;
  if (strcmp(name, "vkEnumerateInstanceVersion") == 0) {
    return (PFN_vkVoidFunction)version;
  }
  if (strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0) {
    return (PFN_vkVoidFunction)extensions;
  }
  return strcmp(name, "vkCreateInstance") == 0 ? (PFN_vkVoidFunction)create : NULL;
}
