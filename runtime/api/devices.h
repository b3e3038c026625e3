// The device options of oriel_model_load, kept to choose a device again.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "base/choices.h"
#include "base/log.h"

namespace oriel_internal {

// Size of disabled_features and enabled_features, including the NUL.
constexpr size_t kFeatureNamesBytes = 256;

// Load options that are needed later. Texts are copied. The buffer of the cache folder has a fixed size, so plans do
// not depend on its length.
class DeviceWish {
 public:
  DeviceWish() = default;
  DeviceWish(const DeviceWish&) = delete;
  DeviceWish& operator=(const DeviceWish&) = delete;
  // Takes memory for the prefix's path from `arena`, which may be a measuring arena.
  void init(const LoadOptions& options, Arena* arena);

  // Options for createExecutor() on another device.
  LoadOptions on(DeviceKind kind, uint32_t number) const;
  const LoadOptions& asked() const { return options_; }
  // Room for the path of prepared weights, kPreparedPathBytes; null without "prepared_dir".
  char* preparedPath() const { return prepared_path_; }
  // The prefix file; null: none.
  const char* prefixFile() const { return options_.prefix_file; }

 private:
  LoadOptions options_ = {};  // the options for createExecutor(), and prefix_file
  char* prepared_path_ = nullptr;
  char cache_dir_[1024] = "";  // fits any path that opening a file accepts
  char disabled_[kFeatureNamesBytes] = "";
  char enabled_[kFeatureNamesBytes] = "";
};

/// Devices to try, in order.
struct DeviceChoices {
  struct One {
    DeviceKind kind;
    uint32_t number;  // of a Vulkan device, counted from 1
  };
  static constexpr uint32_t kMost = 18;

  One list[kMost] = {};
  uint32_t count = 0;

  void add(DeviceKind kind, uint32_t number = 0) {
    if (count < kMost) {
      list[count++] = {kind, number};
    }
  }
};

// The device with this name and driver, then the other Vulkan devices with the fastest kind first, then the CPU if
// `with_cpu`. `with_same` false leaves the named device out.
DeviceChoices devicesAfter(const char* device, const char* driver, const LoadOptions& asked_for,
                           bool with_same, bool with_cpu, const Log& log);

// True if ModelInfo.device is the CPU.
bool isCpuName(const char* device);

// Logs errors as warnings while a device is only tried. Thread-safe.
class DeviceLog {
 public:
  void init(const Log& to) { to_ = to; }
  // Valid for the lifetime of this object.
  Log log() { return {handOn, this, nullptr}; }
  void tries(bool on) { tries_ = on; }

 private:
  static void handOn(oriel_log_level level, const char* message, void* user);

  Log to_;
  std::atomic<bool> tries_{false};
};

}  // namespace oriel_internal
