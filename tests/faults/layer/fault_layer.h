// Orders to the fault layer, a Vulkan layer for tests (VK_LAYER_ORIEL_faults): failing Vulkan calls, the device's
// memory, the duration of its work. And the layer's observations.
//
// The layer knows the functions that Oriel loads (vulkan/loader.h). A program that loads the layer's library itself,
// before Vulkan does, finds oriel_vulkan_faults() in it by dlsym(); its orders and results persist across instances.
// Other programs use the environment:
//
//   ORIEL_FAULTS        orders, separated by spaces:
//                         vkQueueSubmit@3=-4     the third call returns VK_ERROR_DEVICE_LOST
//                         vkQueueSubmit@3+=-2    and all that follow return VK_ERROR_OUT_OF_DEVICE_MEMORY
//                         memory=100000000       bytes that the device has
//                         fences=50              milliseconds that a submission takes at least
//                         dirt=255               fill byte of new host-visible memory
//                       and limits of other devices:
//                         types=1,b              property flags of its memory types, in hexadecimal. Memory that is not
//                                                coherent is a copy until it is flushed or invalidated.
//                         padding=65536          bytes that a buffer needs on top of its own
//                         allocation=1000000     bytes of an allocation at most
//                         families=f,e           flags of its queue families, in hexadecimal
//                         budget=1000000         bytes of its first heap that are free (VK_EXT_memory_budget)
//                         ticks=0                bits of timestamps of its queues, with families=
//                         kind=2                 what it is (VkPhysicalDeviceType): 2 is a card
//                         subgroup=0             lanes of a subgroup, as it reports them
//   ORIEL_FAULTS_WHEN   a file: calls are counted, and fail, while it is there
//   ORIEL_FAULTS_REPORT a file: what is wrong with objects is written behind what it holds; with families= also
//                       "uses family N"
//
// A device that a call has found lost stays lost: everything that can say so says so, until it is destroyed.
#pragma once

#include <stdint.h>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#ifdef __cplusplus
extern "C" {
#endif

struct OrielVulkanFaults {
  /// Counts begin anew, all orders are taken back. Objects that are there stay known.
  void (*clear)(void);
  /// The `nth` call of a function from now on, counted from 1, returns `result` instead of being made; with
  /// `from_then_on` those after it, too.
  void (*fail)(const char* function, uint64_t nth, int32_t result, int from_then_on);
  /// 0: as many as it has.
  void (*capMemory)(uint64_t bytes);
  /// A submission takes at least this many milliseconds.
  void (*delayFences)(uint32_t milliseconds);

  /// Calls since clear(), those included that failed.
  uint64_t (*calls)(const char* function);
  /// visit(function, calls, user) for each function that was called.
  void (*visit)(void (*visit)(const char* function, uint64_t calls, void* user), void* user);
  /// Calls that returned an ordered result, or that a device was lost.
  uint64_t (*failed)(void);
  /// Instances, devices and their objects that are there now.
  uint64_t (*objects)(void);
  /// New lines since the last call: objects left when their device or instance was destroyed, handles never given out or
  /// destroyed twice. "" if nothing was wrong. Valid until the next call.
  const char* (*complaints)(void);
  /// For functions that layers cannot intercept, called by their wrapper: the result to return, or 0.
  int32_t (*decide)(const char* function);
};

typedef const struct OrielVulkanFaults* (*OrielVulkanFaultsFunction)(void);

#ifdef __cplusplus
}
#endif

namespace oriel_internal::faults {

// Orders and observations: the part of the layer that is independent of Vulkan's dispatch. Thread-safe.

class Book {
 public:
  /// Reads the environment.
  Book();

  void clear();
  void fail(const std::string& function, uint64_t nth, int32_t result, bool from_then_on);
  void capMemory(uint64_t bytes) { most_bytes_ = bytes; }
  void delayFences(uint32_t milliseconds) { delay_ms_ = milliseconds; }
  uint64_t mostBytes() const { return most_bytes_; }
  uint32_t delayMs() const { return delay_ms_; }
  /// Fill byte of new memory; below 0: left to the driver.
  int dirt() const { return dirt_; }
  /// Of an imitated device; empty, 0 or below 0: the driver's value.
  const std::vector<uint32_t>& types() const { return types_; }
  const std::vector<uint32_t>& families() const { return families_; }
  uint64_t padding() const { return padding_; }
  uint64_t mostOfAllocation() const { return most_of_allocation_; }
  uint64_t budget() const { return budget_; }
  int ticks() const { return ticks_; }  ///< bits of timestamps; -1: the device's own
  int kind() const { return kind_; }    ///< VkPhysicalDeviceType; -1: the device's own
  int64_t subgroup() const { return subgroup_; }
  /// One more line of complaints.
  void note(const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    complain(line);
  }

  /// Counts a call. Returns its ordered result, or 0.
  int32_t decide(const char* function, bool device_is_lost);
  uint64_t calls(const char* function);
  template <typename Visit>
  void visit(const Visit& visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [function, count] : calls_) {
      visit(function.c_str(), count);
    }
  }
  uint64_t failed();

  /// `owner`: a device, an instance, or null.
  void made(const char* type, uint64_t handle, uint64_t owner);
  void destroyed(const char* type, uint64_t handle);
  /// Returns its remaining objects.
  void ownerDestroyed(uint64_t owner);
  uint64_t objects();
  const char* complaints();

 private:
  struct Order {
    uint64_t nth;
    int32_t result;
    bool from_then_on;
  };
  using Object = std::pair<std::string, uint64_t>;

  void read(const std::string& order);
  void complain(const std::string& line);

  std::mutex mutex_;
  std::map<std::string, uint64_t> calls_;
  std::map<std::string, Order> orders_;
  std::map<Object, uint64_t> objects_;  ///< and whose they are
  std::string complaints_, told_;
  uint64_t failed_ = 0;
  uint64_t most_bytes_ = 0;
  uint32_t delay_ms_ = 0;
  // From the environment only.
  int dirt_ = -1;
  std::vector<uint32_t> types_, families_;
  uint64_t padding_ = 0;
  uint64_t most_of_allocation_ = 0;
  uint64_t budget_ = 0;
  int kind_ = -1;
  int ticks_ = -1;
  int64_t subgroup_ = -1;
  std::string when_, report_;
};

}  // namespace oriel_internal::faults
