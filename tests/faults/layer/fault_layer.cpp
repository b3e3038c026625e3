// The layer: every function that Oriel loads, between the loader and the driver. See fault_layer.h.
#include "faults/layer/fault_layer.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include "vulkan/loader.h"

#include <vulkan/vk_layer.h>

#define ORIEL_LAYER_EXPORT extern "C" __attribute__((visibility("default")))

namespace oriel_internal::faults {
namespace {

using Clock = std::chrono::steady_clock;

Book& book() {
  static Book* const all = new Book;  // never destroyed, since the library may be unloaded first
  return *all;
}

enum class Id {
#define ORIEL_ID(name) name,
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_ID)
#undef ORIEL_ID
      kCount
};

/// An instance or a device, and the next functions on the way to the driver.
struct Owner {
  void* key = nullptr;  ///< what its dispatchable handles begin with
  uint64_t handle = 0;  ///< its own
  PFN_vkGetInstanceProcAddr next_of_instance = nullptr;
  PFN_vkGetDeviceProcAddr next_of_device = nullptr;
  PFN_vkVoidFunction next[static_cast<size_t>(Id::kCount)] = {};
  PFN_vkDeviceWaitIdle wait_idle = nullptr;
  PFN_vkUnmapMemory unmap = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  bool lost = false;
  uint64_t taken_bytes = 0;  ///< device memory
  std::map<uint64_t, uint64_t> allocations;
  std::map<VkFence, Clock::time_point> due;  ///< of submissions that are delayed
};

std::mutex owners_mutex;
std::vector<std::unique_ptr<Owner>> owners;  // a handful at a time

template <typename Handle>
void* keyOf(Handle handle) {
  void* key = nullptr;
  std::memcpy(&key, reinterpret_cast<const void*>(handle), sizeof(key));
  return key;
}

template <typename Handle>
uint64_t number(Handle handle) {
  uint64_t value = 0;
  std::memcpy(&value, &handle, sizeof(handle));
  return value;
}

template <typename Handle>
Owner* ownerOf(Handle handle) {
  void* const key = keyOf(handle);
  const std::lock_guard<std::mutex> lock(owners_mutex);
  for (const std::unique_ptr<Owner>& owner : owners) {
    if (owner->key == key) {
      return owner.get();
    }
  }
  return nullptr;
}

Owner* addOwner(void* key, uint64_t handle) {
  const std::lock_guard<std::mutex> lock(owners_mutex);
  owners.push_back(std::make_unique<Owner>());
  owners.back()->key = key;
  owners.back()->handle = handle;
  return owners.back().get();
}

void removeOwner(Owner* owner) {
  const std::lock_guard<std::mutex> lock(owners_mutex);
  for (auto it = owners.begin(); it != owners.end(); ++it) {
    if (it->get() == owner) {
      owners.erase(it);
      return;
    }
  }
}

constexpr bool begins(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}
// The counted type, from the function's name: "Buffer" for vkCreateBuffer.
constexpr std::string_view typeOf(std::string_view function) {
  if (function == "vkAllocateMemory" || function == "vkFreeMemory") {
    return "Memory";
  }
  if (function == "vkCreateComputePipelines") {
    return "Pipeline";
  }
  const size_t head = begins(function, "vkCreate") ? 8 : begins(function, "vkDestroy") ? 9 : 0;
  return head == 0 ? std::string_view() : function.substr(head);
}
constexpr bool makes(std::string_view function) {
  return begins(function, "vkCreate") || function == "vkAllocateMemory";
}
constexpr bool destroys(std::string_view function) {
  return begins(function, "vkDestroy") || function == "vkFreeMemory";
}

// Handles are undefined after a failed call, except those that the specification sets to null.
template <typename Handle>
void spoil(std::string_view function, Handle* handle) {
  const uintptr_t value = begins(function, "vkCreateComputePipelines") ? 0 : 0xbadbad0;
  std::memcpy(handle, &value, sizeof(value));
}

// A lost device does no more work. The real one may still be working: its memory must stay until it is done.
void lose(Owner* owner) {
  if (!owner->lost && owner->wait_idle != nullptr) {
    VkDevice device = VK_NULL_HANDLE;
    std::memcpy(&device, &owner->handle, sizeof(device));
    (void)owner->wait_idle(device);
  }
  owner->lost = true;
}

// ---- Additional effects of some functions --------------------------------------------------------

void limit(uint64_t* bytes) {
  const uint64_t most = book().mostBytes();
  *bytes = most != 0 && *bytes > most ? most : *bytes;
}

VkResult overCap(Owner* owner, const VkMemoryAllocateInfo* info) {
  const std::lock_guard<std::mutex> lock(owners_mutex);
  const uint64_t most = book().mostBytes();
  return most != 0 && owner->taken_bytes + info->allocationSize > most
             ? VK_ERROR_OUT_OF_DEVICE_MEMORY
             : VK_SUCCESS;
}

// Most drivers give memory of zeros, at first.
void soil(Owner* owner, VkDevice device, const VkDeviceMemory memory, uint64_t bytes) {
  void* room = nullptr;
  const auto map =
      reinterpret_cast<PFN_vkMapMemory>(owner->next[static_cast<size_t>(Id::vkMapMemory)]);
  if (book().dirt() >= 0 && map(device, memory, 0, VK_WHOLE_SIZE, 0, &room) == VK_SUCCESS) {
    std::memset(room, book().dirt(), bytes);
    owner->unmap(device, memory);
  }
}

// False: the fence is not due within the time, which has passed.
bool waitUntilDue(Owner* owner, const VkFence* fences, uint32_t count, uint64_t timeout_ns) {
  Clock::time_point due;
  if (book().delayMs() == 0) {
    return true;
  }
  {
    const std::lock_guard<std::mutex> lock(owners_mutex);
    for (uint32_t i = 0; i < count; ++i) {
      const auto found = owner->due.find(fences[i]);
      due = found == owner->due.end() ? due : std::max(due, found->second);
    }
  }
  const Clock::time_point now = Clock::now();
  if (due <= now) {
    return true;
  }
  const uint64_t left_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(due - now).count());
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, timeout_ns)));
  return left_ns <= timeout_ns;
}

// ---- Limits of other devices ---------------------------------------------------------------------

constexpr uint64_t kImitatedAtom = 256;  // the largest that Vulkan allows

/// The host's view of mapped memory that is not coherent.
struct Mirror {
  uint8_t* device = nullptr;
  std::vector<uint8_t> host;
};
std::mutex mirrors_mutex;
std::map<uint64_t, Mirror> mirrors;
std::map<uint64_t, uint32_t> memory_types;  // of every allocation, as imitated

bool isImitated() { return !book().types().empty(); }

void imitateTypes(VkPhysicalDeviceMemoryProperties* memory) {
  if (!isImitated()) {
    return;
  }
  memory->memoryTypeCount = static_cast<uint32_t>(book().types().size());
  for (uint32_t i = 0; i < memory->memoryTypeCount; ++i) {
    memory->memoryTypes[i] = {book().types()[i], 0};
  }
}

void imitateFamilies(uint32_t* count, VkQueueFamilyProperties* families) {
  const std::vector<uint32_t>& flags = book().families();
  for (uint32_t i = 0; i < flags.size() && families != nullptr; ++i) {
    families[i] = families[0];
    families[i].queueFlags = flags[i];
    families[i].timestampValidBits = book().ticks() >= 0 ? static_cast<uint32_t>(book().ticks())
                                                         : families[0].timestampValidBits;
  }
  *count = flags.empty() ? *count : static_cast<uint32_t>(flags.size());
}

void imitateProperties(VkPhysicalDeviceProperties* properties) {
  if (book().kind() >= 0) {
    properties->deviceType = static_cast<VkPhysicalDeviceType>(book().kind());
  }
  if (isImitated()) {
    properties->limits.nonCoherentAtomSize = kImitatedAtom;
  }
}

void imitateExtensions(const char* layer, uint32_t* count, VkExtensionProperties* extensions) {
  if (layer != nullptr || book().budget() == 0) {
    return;
  }
  if (extensions != nullptr) {
    std::strcpy(extensions[*count].extensionName, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    extensions[*count].specVersion = 1;
  }
  ++*count;
}

void imitateBudget(void* chain) {
  for (auto* next = static_cast<VkBaseOutStructure*>(chain); next != nullptr; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) {
      reinterpret_cast<VkPhysicalDeviceMemoryBudgetPropertiesEXT*>(next)->heapBudget[0] =
          book().budget();
    }
  }
}

void imitateChain(void* chain) {
  for (auto* next = static_cast<VkBaseOutStructure*>(chain); next != nullptr; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES) {
      auto* const limits = reinterpret_cast<VkPhysicalDeviceMaintenance3Properties*>(next);
      limits->maxMemoryAllocationSize = book().mostOfAllocation() != 0
                                            ? book().mostOfAllocation()
                                            : limits->maxMemoryAllocationSize;
    } else if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
      auto* const subgroups = reinterpret_cast<VkPhysicalDeviceSubgroupProperties*>(next);
      subgroups->subgroupSize = book().subgroup() >= 0 ? static_cast<uint32_t>(book().subgroup())
                                                       : subgroups->subgroupSize;
    }
  }
}

void imitateRequirements(VkMemoryRequirements* requirements) {
  requirements->size += book().padding();
  if (isImitated()) {
    requirements->memoryTypeBits = (1u << book().types().size()) - 1;
  }
}

void mirror(const VkDeviceMemory memory, uint64_t bytes, void** data) {
  const std::lock_guard<std::mutex> lock(mirrors_mutex);
  if (isImitated() && (memory_types[number(memory)] & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) == 0) {
    Mirror& one = mirrors[number(memory)];
    one.device = static_cast<uint8_t*>(*data);
    one.host.assign(one.device, one.device + bytes);
    *data = one.host.data();
  }
}

void copyRanges(const VkMappedMemoryRange* ranges, uint32_t count, bool to_device) {
  const std::lock_guard<std::mutex> lock(mirrors_mutex);
  for (uint32_t i = 0; i < count; ++i) {
    const auto found = mirrors.find(number(ranges[i].memory));
    if (found == mirrors.end()) {
      book().note("a range of memory that is not mapped");
      continue;
    }
    Mirror& one = found->second;
    const uint64_t begin = ranges[i].offset;
    const bool whole = ranges[i].size == VK_WHOLE_SIZE;
    const uint64_t end = whole ? one.host.size() : begin + ranges[i].size;
    if (begin % kImitatedAtom != 0 || end > one.host.size() ||
        (end % kImitatedAtom != 0 && end != one.host.size())) {
      book().note("a range that is not of whole atoms");
      continue;
    }
    uint8_t* const host = one.host.data() + begin;
    std::memcpy(to_device ? one.device + begin : host, to_device ? host : one.device + begin,
                end - begin);
  }
}

// ---- Entries -------------------------------------------------------------------------------------

template <Id id, typename Function>
struct Entry;

template <Id id, typename Result, typename First, typename... Rest>
struct Entry<id, Result(VKAPI_PTR*)(First, Rest...)> {
  using Function = Result(VKAPI_PTR*)(First, Rest...);

  static VKAPI_ATTR Result VKAPI_CALL call(First first, Rest... rest) {
    Owner* const owner = ownerOf(first);
    if constexpr (std::is_same_v<Result, VkResult>) {
      const VkResult result = static_cast<VkResult>(book().decide(kName().data(), owner->lost));
      if (result != VK_SUCCESS) {
        if (result == VK_ERROR_DEVICE_LOST) {
          lose(owner);
        }
        return refuse(owner, result, first, rest...);
      }
      return perform(owner, first, rest...);
    } else {
      (void)book().decide(kName().data(), false);
      before(owner, first, rest...);
      if constexpr (id == Id::vkGetDeviceQueue) {
        const auto arguments = std::make_tuple(rest...);
        next(owner)(first, book().families().empty() ? std::get<0>(arguments) : 0,
                    std::get<1>(arguments), std::get<2>(arguments));
      } else {
        next(owner)(first, rest...);
      }
      after(owner, first, rest...);
    }
  }

 private:
  static Function next(Owner* owner) {
    return reinterpret_cast<Function>(owner->next[static_cast<size_t>(id)]);
  }

  static VkResult refuse(Owner*, VkResult result, First, [[maybe_unused]] Rest... rest) {
    if constexpr (id == Id::vkAllocateDescriptorSets || id == Id::vkAllocateCommandBuffers) {
      clearAll(rest...);
    } else if constexpr (makes(kName()) || id == Id::vkMapMemory) {
      spoil(kName(), std::get<sizeof...(Rest) - 1>(std::make_tuple(rest...)));
    }
    return result;
  }
  static void clearAll(const VkDescriptorSetAllocateInfo* info, VkDescriptorSet* sets) {
    std::fill_n(sets, info->descriptorSetCount, VkDescriptorSet{});
  }
  static void clearAll(const VkCommandBufferAllocateInfo* info, VkCommandBuffer* buffers) {
    std::fill_n(buffers, info->commandBufferCount, VkCommandBuffer{});
  }

  static VkResult perform(Owner* owner, First first, Rest... rest) {
    if constexpr (id == Id::vkAllocateMemory) {
      const VkMemoryAllocateInfo* const info = std::get<0>(std::make_tuple(rest...));
      if (const VkResult result = overCap(owner, info); result != VK_SUCCESS) {
        return refuse(owner, result, first, rest...);
      }
    }
    if constexpr (id == Id::vkWaitForFences) {
      const auto arguments = std::make_tuple(rest...);
      if (!waitUntilDue(owner, std::get<1>(arguments), std::get<0>(arguments),
                        std::get<3>(arguments))) {
        return VK_TIMEOUT;
      }
    }
    const VkResult result = imitate(owner, first, rest...);
    if (result >= 0) {
      after(owner, first, rest...);
    }
    return result;
  }

  // The call, in the driver's own numbers of memory types and queue families.
  static VkResult imitate(Owner* owner, First first, Rest... rest) {
    if constexpr (id == Id::vkAllocateMemory) {
      VkMemoryAllocateInfo info = *std::get<0>(std::make_tuple(rest...));
      info.memoryTypeIndex = isImitated() ? 0 : info.memoryTypeIndex;
      return next(owner)(first, &info, std::get<1>(std::make_tuple(rest...)),
                         std::get<2>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkCreateCommandPool) {
      VkCommandPoolCreateInfo info = *std::get<0>(std::make_tuple(rest...));
      info.queueFamilyIndex = book().families().empty() ? info.queueFamilyIndex : 0;
      return next(owner)(first, &info, std::get<1>(std::make_tuple(rest...)),
                         std::get<2>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkFlushMappedMemoryRanges ||
                         id == Id::vkInvalidateMappedMemoryRanges) {
      if (isImitated()) {
        const auto arguments = std::make_tuple(rest...);
        copyRanges(std::get<1>(arguments), std::get<0>(arguments),
                   id == Id::vkFlushMappedMemoryRanges);
        return VK_SUCCESS;
      }
      return next(owner)(first, rest...);
    } else {
      return next(owner)(first, rest...);
    }
  }

  static void before(Owner* owner, [[maybe_unused]] First first, Rest... rest) {
    if constexpr (destroys(kName()) && std::is_same_v<First, VkDevice> && sizeof...(Rest) == 2) {
      const auto handle = std::get<0>(std::make_tuple(rest...));
      book().destroyed(std::string(typeOf(kName())).c_str(), number(handle));
      if constexpr (id == Id::vkFreeMemory) {
        {
          const std::lock_guard<std::mutex> lock(mirrors_mutex);
          mirrors.erase(number(handle));
        }
        const std::lock_guard<std::mutex> lock(owners_mutex);
        owner->taken_bytes -= owner->allocations[number(handle)];
        owner->allocations.erase(number(handle));
      }
    }
  }

  static void after(Owner* owner, [[maybe_unused]] First first, [[maybe_unused]] Rest... rest) {
    if constexpr (makes(kName()) && std::is_same_v<First, VkDevice>) {
      const auto arguments = std::make_tuple(rest...);
      const auto* const made = std::get<sizeof...(Rest) - 1>(arguments);
      uint32_t count = 1;
      if constexpr (id == Id::vkCreateComputePipelines) {
        count = std::get<1>(arguments);
      }
      for (uint32_t i = 0; i < count; ++i) {
        book().made(std::string(typeOf(kName())).c_str(), number(made[i]), owner->handle);
      }
      if constexpr (id == Id::vkAllocateMemory) {
        const uint64_t bytes = std::get<0>(arguments)->allocationSize;
        soil(owner, first, *made, bytes);
        if (isImitated()) {
          const std::lock_guard<std::mutex> lock(mirrors_mutex);
          memory_types[number(*made)] = book().types()[std::get<0>(arguments)->memoryTypeIndex];
        }
        const std::lock_guard<std::mutex> lock(owners_mutex);
        owner->allocations[number(*made)] = bytes;
        owner->taken_bytes += bytes;
      }
    } else if constexpr (id == Id::vkGetPhysicalDeviceMemoryProperties) {
      VkPhysicalDeviceMemoryProperties* const memory = std::get<0>(std::make_tuple(rest...));
      for (uint32_t i = 0; i < memory->memoryHeapCount; ++i) {
        limit(&memory->memoryHeaps[i].size);
      }
      imitateTypes(memory);
    } else if constexpr (id == Id::vkGetPhysicalDeviceMemoryProperties2) {
      VkPhysicalDeviceMemoryProperties2* const memory = std::get<0>(std::make_tuple(rest...));
      for (uint32_t i = 0; i < memory->memoryProperties.memoryHeapCount; ++i) {
        limit(&memory->memoryProperties.memoryHeaps[i].size);
      }
      imitateTypes(&memory->memoryProperties);
      imitateBudget(memory->pNext);
    } else if constexpr (id == Id::vkEnumerateDeviceExtensionProperties) {
      imitateExtensions(std::get<0>(std::make_tuple(rest...)),
                        std::get<1>(std::make_tuple(rest...)),
                        std::get<2>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkGetPhysicalDeviceQueueFamilyProperties) {
      imitateFamilies(std::get<0>(std::make_tuple(rest...)), std::get<1>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkGetPhysicalDeviceProperties) {
      imitateProperties(std::get<0>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkGetPhysicalDeviceProperties2) {
      VkPhysicalDeviceProperties2* const properties = std::get<0>(std::make_tuple(rest...));
      imitateProperties(&properties->properties);
      imitateChain(properties->pNext);
    } else if constexpr (id == Id::vkGetBufferMemoryRequirements) {
      imitateRequirements(std::get<1>(std::make_tuple(rest...)));
    } else if constexpr (id == Id::vkMapMemory) {
      const auto arguments = std::make_tuple(rest...);
      uint64_t bytes = 0;
      {
        const std::lock_guard<std::mutex> lock(owners_mutex);
        bytes = owner->allocations[number(std::get<0>(arguments))];
      }
      mirror(std::get<0>(arguments), bytes, std::get<4>(arguments));
    } else if constexpr (id == Id::vkQueueSubmit) {
      const VkFence fence = std::get<2>(std::make_tuple(rest...));
      const std::lock_guard<std::mutex> lock(owners_mutex);
      owner->due.erase(fence);
      if (book().delayMs() != 0) {
        owner->due[fence] = Clock::now() + std::chrono::milliseconds(book().delayMs());
      }
    }
  }

  static constexpr std::string_view kName() {
    constexpr std::string_view names[] = {
#define ORIEL_NAME(function) #function,
        ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_NAME)
#undef ORIEL_NAME
    };
    return names[static_cast<size_t>(id)];
  }
};

// ---- Instances and devices -----------------------------------------------------------------------

template <typename Info>
Info* linkOf(const void* chain, VkStructureType type) {
  for (auto* info = static_cast<const Info*>(chain); info != nullptr;
       info = static_cast<const Info*>(info->pNext)) {
    if (info->sType == type && info->function == VK_LAYER_LINK_INFO) {
      return const_cast<Info*>(info);
    }
  }
  return nullptr;
}

VKAPI_ATTR VkResult VKAPI_CALL createInstance(const VkInstanceCreateInfo* info,
                                              const VkAllocationCallbacks* allocator,
                                              VkInstance* instance) {
  if (const int32_t result = book().decide("vkCreateInstance", false); result != 0) {
    return static_cast<VkResult>(result);
  }
  auto* const link =
      linkOf<VkLayerInstanceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (link == nullptr) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  const PFN_vkGetInstanceProcAddr find = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(find(VK_NULL_HANDLE, "vkCreateInstance"));
  const VkResult result = create(info, allocator, instance);
  if (result < 0) {
    return result;
  }
  Owner* const owner = addOwner(keyOf(*instance), number(*instance));
  owner->next_of_instance = find;
  owner->instance = *instance;
#define ORIEL_FIND(name) owner->next[static_cast<size_t>(Id::name)] = find(*instance, #name);
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_FIND)
#undef ORIEL_FIND
  book().made("Instance", owner->handle, 0);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroyInstance(VkInstance instance,
                                           const VkAllocationCallbacks* allocator) {
  (void)book().decide("vkDestroyInstance", false);
  Owner* const owner = ownerOf(instance);
  book().ownerDestroyed(owner->handle);
  book().destroyed("Instance", owner->handle);
  reinterpret_cast<PFN_vkDestroyInstance>(owner->next[static_cast<size_t>(Id::vkDestroyInstance)])(
      instance, allocator);
  removeOwner(owner);
}

VKAPI_ATTR VkResult VKAPI_CALL createDevice(VkPhysicalDevice physical,
                                            const VkDeviceCreateInfo* info,
                                            const VkAllocationCallbacks* allocator,
                                            VkDevice* device) {
  Owner* const of_instance = ownerOf(physical);
  if (const int32_t result = book().decide("vkCreateDevice", false); result != 0) {
    return static_cast<VkResult>(result);
  }
  auto* const link =
      linkOf<VkLayerDeviceCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (link == nullptr) {
    return VK_ERROR_INITIALIZATION_FAILED;
  }
  const PFN_vkGetInstanceProcAddr find_create = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  const PFN_vkGetDeviceProcAddr find = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(find_create(of_instance->instance, "vkCreateDevice"));
  VkDeviceCreateInfo own = *info;
  VkDeviceQueueCreateInfo queue = *info->pQueueCreateInfos;
  if (!book().families().empty()) {
    book().note("uses family " + std::to_string(queue.queueFamilyIndex));
    queue.queueFamilyIndex = 0;
    own.pQueueCreateInfos = &queue;
  }
  const VkResult result = create(physical, &own, allocator, device);
  if (result < 0) {
    return result;
  }
  Owner* const owner = addOwner(keyOf(*device), number(*device));
  owner->next_of_device = find;
#define ORIEL_FIND(name) owner->next[static_cast<size_t>(Id::name)] = find(*device, #name);
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_FIND)
#undef ORIEL_FIND
  owner->wait_idle = reinterpret_cast<PFN_vkDeviceWaitIdle>(find(*device, "vkDeviceWaitIdle"));
  owner->unmap = reinterpret_cast<PFN_vkUnmapMemory>(find(*device, "vkUnmapMemory"));
  book().made("Device", owner->handle, of_instance->handle);
  return result;
}

VKAPI_ATTR void VKAPI_CALL destroyDevice(VkDevice device, const VkAllocationCallbacks* allocator) {
  (void)book().decide("vkDestroyDevice", false);
  Owner* const owner = ownerOf(device);
  book().ownerDestroyed(owner->handle);
  book().destroyed("Device", owner->handle);
  reinterpret_cast<PFN_vkDestroyDevice>(owner->next[static_cast<size_t>(Id::vkDestroyDevice)])(
      device, allocator);
  removeOwner(owner);
}

// ---- Lookup of functions -------------------------------------------------------------------------

template <typename Function>
PFN_vkVoidFunction plain(Function* function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

// Null: not a function of this layer.
PFN_vkVoidFunction find(const char* name) {
  const std::string_view wanted = name;
  if (wanted == "vkCreateInstance") {
    return plain(createInstance);
  }
  if (wanted == "vkDestroyInstance") {
    return plain(destroyInstance);
  }
  if (wanted == "vkCreateDevice") {
    return plain(createDevice);
  }
  if (wanted == "vkDestroyDevice") {
    return plain(destroyDevice);
  }
#define ORIEL_IS(function)                                   \
  if (wanted == #function) {                                 \
    return plain(Entry<Id::function, PFN_##function>::call); \
  }
  ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_IS)
#undef ORIEL_IS
  return nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL deviceFunction(VkDevice device, const char* name) {
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return plain(deviceFunction);
  }
  const PFN_vkVoidFunction next = ownerOf(device)->next_of_device(device, name);
  const PFN_vkVoidFunction own = next == nullptr ? nullptr : find(name);
  return own != nullptr ? own : next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instanceFunction(VkInstance instance, const char* name) {
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return plain(instanceFunction);
  }
  if (std::strcmp(name, "vkGetDeviceProcAddr") == 0) {
    return plain(deviceFunction);
  }
  const PFN_vkVoidFunction own = find(name);
  if (own != nullptr || instance == VK_NULL_HANDLE) {
    return own;
  }
  return ownerOf(instance)->next_of_instance(instance, name);
}

}  // namespace
}  // namespace oriel_internal::faults

ORIEL_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = oriel_internal::faults::instanceFunction;
  version->pfnGetDeviceProcAddr = oriel_internal::faults::deviceFunction;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}

ORIEL_LAYER_EXPORT const OrielVulkanFaults* oriel_vulkan_faults() {
  using oriel_internal::faults::book;
  static const OrielVulkanFaults table = {
      [] { book().clear(); },
      [](const char* function, uint64_t nth, int32_t result, int from_then_on) {
        book().fail(function, nth, result, from_then_on != 0);
      },
      [](uint64_t bytes) { book().capMemory(bytes); },
      [](uint32_t milliseconds) { book().delayFences(milliseconds); },
      [](const char* function) { return book().calls(function); },
      [](void (*visit)(const char*, uint64_t, void*), void* user) {
        book().visit([&](const char* function, uint64_t calls) { visit(function, calls, user); });
      },
      [] { return book().failed(); },
      [] { return book().objects(); },
      [] { return book().complaints(); },
      [](const char* function) { return book().decide(function, false); },
  };
  return &table;
}
