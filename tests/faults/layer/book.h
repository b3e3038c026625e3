// Orders and observations: the part of the layer that is independent of Vulkan's dispatch. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "faults/layer/fault_layer.h"

namespace oriel_internal::faults {

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
