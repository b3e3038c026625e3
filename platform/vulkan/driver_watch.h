// A marker in the cache folder during driver calls that may crash the process. A start that finds the marker knows the
// place of the crash. The marker exists only during such a call, so a process that is killed while it reads or waits
// leaves none.
#pragma once

#include <atomic>

#include "vulkan/device_caps.h"

namespace oriel_internal {

/// Places of possible crashes, in the order of a load. If several are active the last counts: compilation that runs
/// during the first work is blamed on that work.
enum class DriverPlace : uint32_t {
  kNone,         ///< no call active
  kInstance,     ///< the loader, the instance, the list of devices
  kDevice,       ///< creating the device
  kKeptKernels,  ///< loading compiled pipelines from the cache
  kCompile,      ///< compiling kernels
  kFirstSteps,   ///< the first work of kernels, including tests
};
/// "making the device"
const char* placeName(DriverPlace place);

/// The active call.
struct DriverContact {
  DriverPlace place = DriverPlace::kNone;
  uint32_t features = 0;  ///< featureBit()s that it needed; 0: nothing optional
};

class DriverWatch {
 public:
  /// Uses the marker `path` from now on. Returns the place of another process's crash with this driver; kNone: none.
  DriverContact begin(const char* path, uint32_t driver_version);
  /// Marks the start of a driver call.
  void enter(DriverPlace place, uint32_t features);
  /// Marks its end. Both calls are thread-safe.
  void leave(DriverPlace place, uint32_t features);
  /// Ends marking and removes the marker.
  void end() { marker_.end(); }

 private:
  static constexpr uint32_t kCounted = 6;  // optional features that kernels need
  static constexpr uint32_t kPlaces = static_cast<uint32_t>(DriverPlace::kFirstSteps) + 1;
  void count(DriverPlace place, uint32_t features, int32_t by);
  void write();

  WorkMarker marker_;
  uint32_t driver_version_ = 0;
  std::atomic<uint32_t> writing_{0};  // 1: a thread is counting and writing
  int32_t under_way_[kPlaces] = {};
  int32_t counts_[kCounted] = {};
};

}  // namespace oriel_internal
