/* A Vulkan loader that hands everything on to the real one, ORIEL_TEST_LOADER, until the file ORIEL_TEST_LOST is
 * there: from then on the device is lost. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

static PFN_vkGetInstanceProcAddr real_address;
static PFN_vkWaitForFences real_wait;

static VkResult VKAPI_CALL wait_or_lose(VkDevice device, uint32_t count, const VkFence* fences,
                                        VkBool32 all, uint64_t timeout) {
  const VkResult result = real_wait(device, count, fences, all, timeout);
  const char* lost = getenv("ORIEL_TEST_LOST");
  return lost != NULL && access(lost, F_OK) == 0 ? VK_ERROR_DEVICE_LOST : result;
}

PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  if (real_address == NULL) {
    const char* path = getenv("ORIEL_TEST_LOADER");
    void* library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* symbol = library == NULL ? NULL : dlsym(library, "vkGetInstanceProcAddr");
    memcpy(&real_address, &symbol, sizeof(symbol));
    if (real_address == NULL) {
      return NULL;
    }
  }
  const PFN_vkVoidFunction real = real_address(instance, name);
  if (real != NULL && strcmp(name, "vkWaitForFences") == 0) {
    real_wait = (PFN_vkWaitForFences)real;
    return (PFN_vkVoidFunction)wait_or_lose;
  }
  return real;
}
