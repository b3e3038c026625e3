// Findings about a device and its driver on this machine: kernels with right and wrong results, and calls in which the
// driver ended a process. They are kept in a small checked file in the cache folder for this device, driver and kernel
// build; any other file is ignored. docs/devices.md.
#pragma once

#include <atomic>

#include "vulkan/device_caps.h"

namespace oriel_internal {

// A marker in the cache folder during driver calls that may crash the process. A start that finds the marker knows the
// place of the crash. The marker exists only during such a call, so a process that is killed while it reads or waits
// leaves none.

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

// Findings, and their file.

enum class KernelState : uint8_t {
  kUntried,
  kRight,
  kWrong,
  kPassedOver,  ///< the self-test has no case for it
};

/// featureBit()s that the kernel needs, by the suffix of its name.
uint32_t featuresOfKernel(const char* name);
/// The least safe feature of a set, which is turned off first. 0 for an empty set.
uint32_t riskiest(uint32_t features);

class Verdict {
 public:
  static constexpr uint32_t kMaxKernels = 320;
  /// Matmul candidates: by use, then by weight type. `position` is a candidate's index in its table.
  static constexpr uint32_t kChoices = kMatmulUses * kWeightTypes;

  /// Reads the record of the device `caps` from `dir`, if any. `begins`: for a start. Some starts retry suspected
  /// features. Otherwise suspected features stay off until such a start succeeds.
  void read(const DeviceCaps& caps, const char* dir, bool begins = false);
  /// Writes the file if there is a folder and the record changed. Keeps crashes recorded by another process meanwhile. A
  /// failure here never fails a load.
  void keep(const DeviceCaps& caps, const char* dir);

  KernelState state(uint32_t shader) const {
    return static_cast<KernelState>(kept_.kernels[shader]);
  }
  /// The latest call wins.
  void note(uint32_t shader, KernelState state);
  bool isAside(uint32_t choice, uint32_t position) const {
    return (kept_.aside[choice] >> position & 1u) != 0;
  }
  void putAside(uint32_t choice, uint32_t position);
  /// Kernels with these features gave wrong results. forgetWrong() removes all such records.
  void turnOff(uint32_t features);
  void forgetWrong();
  uint32_t wrongFeatures() const { return kept_.wrong_features; }
  uint64_t asideHash() const;

  /// Records that a driver ended a process during `contact`. False if that does not implicate the device.
  bool died(const DriverContact& contact);
  /// Records a start: without the suspected features, or, after a number of starts, with them.
  void starting();
  /// Records that the first work of the driver succeeded.
  void survived();
  /// The same in a test, which uses all features.
  void survivedTest();
  /// Features that crashed the driver and are not used in this start.
  uint32_t diedFeatures() const { return suspected_ ? kept_.died.features : 0; }
  bool isDeadly() const { return suspected_ && kept_.died.deadly != 0; }

  /// One line for people, without working features: "" if there is nothing to report.
  void describe(char* text, size_t capacity) const;
  void countKernels(uint32_t* right, uint32_t* wrong) const;

  /// Starts without a feature after one crash: a user may have killed the process at that moment. Four times as many
  /// after each further crash.
  static constexpr uint32_t kSuspectStarts = 3;
  static constexpr uint32_t kMostSuspectStarts = 3u << 20;

 private:
  struct Deaths {
    uint32_t features;
    uint32_t place;
    uint32_t count;
    uint32_t suspect_starts;  ///< remaining
    uint32_t deadly;          ///< 1: crashed without optional features
  };
  struct Kept {
    uint32_t wrong_features;
    Deaths died;
    uint8_t aside[kChoices];  ///< candidates with wrong results, a bit per position
    uint8_t reserved[4];
    uint8_t kernels[kMaxKernels];
  };
  static_assert(sizeof(Kept) == 24 + kChoices + 4 + kMaxKernels, "no padding: written as bytes");
  struct File;
  static File expectedFile(const DeviceCaps& caps);
  static bool readFile(const DeviceCaps& caps, const char* path, File* file);

  Kept kept_ = {};
  bool suspected_ = false;
  bool changed_ = false;
  bool deaths_changed_ = false;
};

/// The same for Vulkan as a whole, before any device is known. No version identifies the driver, so a suspected driver
/// is tried again after some starts, and later each time.
class VulkanRecord {
 public:
  /// `died`: another process left its marker. `counts`: of those starts one is over. False: Vulkan is not to be started
  /// this time.
  bool start(const char* dir, bool died, bool counts);
  void survived();
  static bool makePath(const char* dir, const char* kind, char* path, size_t capacity);

 private:
  char path_[1024] = "";
  bool there_ = false;
};

/// Removes every verdict, mark and record of `dir`. Returns the number of files; `*left` grows by the files that stay.
uint32_t forgetVerdicts(const char* dir, uint32_t* left);

}  // namespace oriel_internal
