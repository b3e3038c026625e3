// Counts every Vulkan call and can fail any of them; `fail` is called by one thread at a time. Tests only; one tap at a
// time.
//
//   VulkanTap tap;
//   options.driver_tap = &VulkanTap::kDriver;
//   tap.fail = [](const std::string& call, int nth) { return call == "vkAllocateMemory" && nth == 2
//                                                     ? VK_ERROR_OUT_OF_DEVICE_MEMORY : VK_SUCCESS; };
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

#include "vulkan/loader.h"

namespace oriel_internal::test {

class VulkanTap {
 public:
  VulkanTap() { active_ = this; }
  ~VulkanTap() { active_ = nullptr; }
  VulkanTap(const VulkanTap&) = delete;
  VulkanTap& operator=(const VulkanTap&) = delete;

  static void wrap(VulkanApi* api) {
#define ORIEL_WRAP(name) Entry<Id::name, PFN_##name>::wrap(#name, &api->name);
    ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_WRAP)
    ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_WRAP)
#undef ORIEL_WRAP
  }

  static constexpr VulkanDriverTap kDriver = {wrap};

  /// Calls made, by name.
  std::map<std::string, int> calls;
  /// Called before each call that returns a VkResult (`nth` counts from 1, per name): a result other than VK_SUCCESS
  /// replaces the call.
  std::function<VkResult(const std::string& call, int nth)> fail;
  /// Void calls with these names are skipped.
  std::map<std::string, bool> drop;

 private:
  enum class Id {
#define ORIEL_ID(name) name,
    ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_ID) ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_ID)
#undef ORIEL_ID
  };

  template <Id id, typename Function>
  struct Entry;

  template <Id id, typename Result, typename... Arguments>
  struct Entry<id, Result(VKAPI_PTR*)(Arguments...)> {
    using Function = Result(VKAPI_PTR*)(Arguments...);
    static inline Function real = nullptr;
    static inline const char* name = "";

    static void wrap(const char* called, Function* function) {
      if (*function != nullptr && *function != call) {
        name = called;
        real = *function;
        *function = call;
      }
    }
    static VKAPI_ATTR Result VKAPI_CALL call(Arguments... arguments) {
      if (active_ != nullptr) {
        std::unique_lock<std::mutex> lock(active_->mutex_);
        const int nth = ++active_->calls[name];
        if constexpr (std::is_same_v<Result, VkResult>) {
          if (active_->fail) {
            if (const VkResult result = active_->fail(name, nth); result != VK_SUCCESS) {
              // A lost device does no more work; the real one may finish its work.
              if (id == Id::vkWaitForFences && result == VK_ERROR_DEVICE_LOST) {
                lock.unlock();
                (void)real(arguments...);
              }
              return result;
            }
          }
        } else if constexpr (std::is_void_v<Result>) {
          if (active_->drop.count(name) != 0) {
            return;
          }
        }
      }
      return real(arguments...);
    }
  };

  static inline VulkanTap* active_ = nullptr;
  std::mutex mutex_;  // pipelines are compiled by several threads
};

}  // namespace oriel_internal::test
