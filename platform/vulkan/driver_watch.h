// What stands in the cache folder while the driver is at something that may end this process: a start that finds it
// left behind knows where the driver died. Only what is under way in that moment is marked, so that a process that is
// ended while it reads or waits leaves nothing.
#pragma once

#include <atomic>

#include "vulkan/device_caps.h"

namespace oriel_internal {

/// What a driver may die of, in the order of a load. Of several that are under way the last counts: where kernels are
/// compiled beside its first work, it was that.
enum class DriverPlace : uint32_t {
  kNone,         ///< nothing was under way
  kInstance,     ///< the loader, an instance, what there is and can do
  kDevice,       ///< making the device
  kKeptKernels,  ///< taking compiled pipelines that were kept
  kCompile,      ///< compiling kernels
  kFirstSteps,   ///< the first work that kernels do, tests included
};
/// "making the device"
const char* placeName(DriverPlace place);

/// What was under way.
struct DriverContact {
  DriverPlace place = DriverPlace::kNone;
  uint32_t features = 0;  ///< featureBit()s that it needed; 0: nothing optional
};

class DriverWatch {
 public:
  /// Of the marker `path` from now on. What another process left there, of this driver; kNone: nothing.
  DriverContact begin(const char* path, uint32_t driver_version);
  /// From here on ...
  void enter(DriverPlace place, uint32_t features);
  /// ... to here the driver is at work. May be called from several threads at a time.
  void leave(DriverPlace place, uint32_t features);
  /// Nothing more is to be marked; what was marked is removed.
  void end() { marker_.end(); }

 private:
  static constexpr uint32_t kCounted = 6;  // optional features that kernels need
  static constexpr uint32_t kPlaces = static_cast<uint32_t>(DriverPlace::kFirstSteps) + 1;
  void count(DriverPlace place, uint32_t features, int32_t by);
  void write();

  WorkMarker marker_;
  uint32_t driver_version_ = 0;
  std::atomic<uint32_t> writing_{0};  // 1: somebody counts and writes
  int32_t under_way_[kPlaces] = {};
  int32_t counts_[kCounted] = {};
};

}  // namespace oriel_internal
