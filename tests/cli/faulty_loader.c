/* A Vulkan loader that forwards everything to the real one, ORIEL_TEST_LOADER, with a driver that gives wrong results or crashes:
 *   ORIEL_TEST_LIE   kinds of kernels with wrong results: matrix, half, dot, subgroup, texel, plain
 *   ORIEL_TEST_DIE   the function that ends the process: vkCreateInstance, vkCreateDevice (ORIEL_TEST_DIE=vkCreateDevice:NAME
 *                    where it enables an extension whose name has that part), vkCreatePipelineCache (of kept kernels),
 *                    vkCreateComputePipelines, vkQueueSubmit; :KIND after the last but one, of that kind of kernel
 *   ORIEL_TEST_ONCE  a file created by the first crash, which prevents further ones
 *   ORIEL_TEST_HANG  any text: hangs in that function instead, and creates the file ORIEL_TEST_ONCE
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

enum { kMostModules = 256 };

static PFN_vkGetInstanceProcAddr real_address;
static PFN_vkCreateInstance real_instance;
static PFN_vkCreateDevice real_device;
static PFN_vkCreateShaderModule real_module;
static PFN_vkCreatePipelineCache real_cache;
static PFN_vkCreateComputePipelines real_pipelines;
static PFN_vkQueueSubmit real_submit;
static struct {
  VkShaderModule module;
  const char* kind;
} modules[kMostModules];
static unsigned module_count;

static void die_here(void) {
  const char* once = getenv("ORIEL_TEST_ONCE");
  if (once != NULL) {
    const int fd = open(once, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0) {
      return; /* it has crashed already */
    }
    close(fd);
  }
  while (getenv("ORIEL_TEST_HANG") != NULL) {
    pause();
  }
  abort();
}

/* The text after "FUNCTION" or "FUNCTION:" in ORIEL_TEST_DIE; NULL: for another function. */
static const char* death_in(const char* function) {
  const char* death = getenv("ORIEL_TEST_DIE");
  const size_t length = strlen(function);
  if (death == NULL || strncmp(death, function, length) != 0) {
    return NULL;
  }
  return death[length] == '\0' ? "" : death[length] == ':' ? death + length + 1 : NULL;
}

/* Classified by the capabilities of its code, and as texel by its reads of images (OpImageRead): one module holds the kernels
 * with and without them, and the library removes the unused ones. */
static const char* kind_of(const uint32_t* words, size_t count) {
  const char* kind = "plain";
  for (size_t at = 5; at < count && words[at] >> 16 != 0; at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xFFFF;
    const uint32_t capability = op == 17 ? words[at + 1] : 0;
    if (capability == 6022) {
      return "matrix";
    }
    kind = capability == 9                            ? "half"
           : capability == 6018 || capability == 6019 ? "dot"
           : capability == 63                         ? "subgroup"
           : op == 98 && strcmp(kind, "plain") == 0   ? "texel"
                                                      : kind;
  }
  return kind;
}

/* Every sum of floats (OpFAdd) is a difference (OpFSub), every product (OpFMul) a quotient (OpFDiv) and every fma
 * (50 of GLSL.std.450) a mix (46): code as valid as before. */
static void spoil(uint32_t* words, size_t count) {
  for (size_t at = 5; at < count && words[at] >> 16 != 0; at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xFFFF;
    if (op == 129 || op == 133) {
      words[at] = (words[at] & 0xFFFF0000u) | (op == 129 ? 131 : 136);
    } else if (op == 12 && words[at + 4] == 50) {
      words[at + 4] = 46;
    }
  }
}

static VkResult VKAPI_CALL make_instance(const VkInstanceCreateInfo* info,
                                         const VkAllocationCallbacks* allocator,
                                         VkInstance* instance) {
  if (death_in("vkCreateInstance") != NULL) {
    die_here();
  }
  return real_instance(info, allocator, instance);
}

static VkResult VKAPI_CALL make_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                       const VkAllocationCallbacks* allocator, VkDevice* device) {
  const char* part = death_in("vkCreateDevice");
  int dies = part != NULL && part[0] == '\0';
  for (uint32_t i = 0; part != NULL && i < info->enabledExtensionCount; ++i) {
    dies = dies || strstr(info->ppEnabledExtensionNames[i], part) != NULL;
  }
  if (dies) {
    die_here();
  }
  return real_device(physical, info, allocator, device);
}

static VkResult VKAPI_CALL make_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                       const VkAllocationCallbacks* allocator,
                                       VkShaderModule* module) {
  const size_t count = info->codeSize / sizeof(uint32_t);
  const char* kind = kind_of(info->pCode, count);
  const char* lie = getenv("ORIEL_TEST_LIE");
  VkShaderModuleCreateInfo changed = *info;
  uint32_t* words = NULL;
  if (lie != NULL && strstr(lie, kind) != NULL) {
    words = malloc(info->codeSize);
    memcpy(words, info->pCode, info->codeSize);
    spoil(words, count);
    changed.pCode = words;
  }
  const VkResult result = real_module(device, &changed, allocator, module);
  free(words);
  modules[module_count % kMostModules].module = *module;
  modules[module_count++ % kMostModules].kind = kind;
  return result;
}

static VkResult VKAPI_CALL make_cache(VkDevice device, const VkPipelineCacheCreateInfo* info,
                                      const VkAllocationCallbacks* allocator,
                                      VkPipelineCache* cache) {
  if (death_in("vkCreatePipelineCache") != NULL && info->initialDataSize != 0) {
    die_here();
  }
  return real_cache(device, info, allocator, cache);
}

static VkResult VKAPI_CALL make_pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                                          const VkComputePipelineCreateInfo* infos,
                                          const VkAllocationCallbacks* allocator,
                                          VkPipeline* pipelines) {
  const char* kind = death_in("vkCreateComputePipelines");
  for (unsigned i = module_count; kind != NULL && i-- != 0;) {
    if (modules[i % kMostModules].module == infos->stage.module) {
      if (kind[0] == '\0' || strcmp(modules[i % kMostModules].kind, kind) == 0) {
        die_here();
      }
      break;
    }
  }
  return real_pipelines(device, cache, count, infos, allocator, pipelines);
}

static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                  VkFence fence) {
  if (death_in("vkQueueSubmit") != NULL) {
    die_here();
  }
  return real_submit(queue, count, infos, fence);
}

PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  static const struct {
    const char* name;
    PFN_vkVoidFunction* real;
    PFN_vkVoidFunction ours;
  } wrapped[] = {
      {"vkCreateInstance", (PFN_vkVoidFunction*)&real_instance, (PFN_vkVoidFunction)make_instance},
      {"vkCreateDevice", (PFN_vkVoidFunction*)&real_device, (PFN_vkVoidFunction)make_device},
      {"vkCreateShaderModule", (PFN_vkVoidFunction*)&real_module, (PFN_vkVoidFunction)make_module},
      {"vkCreatePipelineCache", (PFN_vkVoidFunction*)&real_cache, (PFN_vkVoidFunction)make_cache},
      {"vkCreateComputePipelines", (PFN_vkVoidFunction*)&real_pipelines,
       (PFN_vkVoidFunction)make_pipelines},
      {"vkQueueSubmit", (PFN_vkVoidFunction*)&real_submit, (PFN_vkVoidFunction)submit},
  };
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
  for (size_t i = 0; real != NULL && i < sizeof(wrapped) / sizeof(wrapped[0]); ++i) {
    if (strcmp(name, wrapped[i].name) == 0) {
      *wrapped[i].real = real;
      return wrapped[i].ours;
    }
  }
  return real;
}
