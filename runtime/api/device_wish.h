// What an app asked of a device when it loaded a model: to choose one again.
#pragma once

#include <atomic>

#include "base/arena.h"
#include "base/choices.h"
#include "base/log.h"

namespace oriel_internal {

/// Of disabled_features and enabled_features, the NUL included.
constexpr size_t kFeatureNamesBytes = 256;

/// Options that are read by oriel_model_load and are needed after it. Texts are copied; that of the cache folder has as
/// much room whatever its length, so that a plan without one is the same.
class DeviceWish {
 public:
  DeviceWish() = default;
  DeviceWish(const DeviceWish&) = delete;
  DeviceWish& operator=(const DeviceWish&) = delete;
  /// Takes room for the prefix's path in `arena`; measures likewise.
  void init(const LoadOptions& options, Arena* arena);

  /// For createExecutor(), on another device.
  LoadOptions on(DeviceKind kind, uint32_t number) const;
  const LoadOptions& asked() const { return options_; }
  /// The file that the prefix came from; null: none.
  const char* prefixFile() const { return options_.prefix_file; }

 private:
  LoadOptions options_ = {};   ///< those that createExecutor() reads, and prefix_file
  char cache_dir_[1024] = "";  // as long as any file's path in it may be
  char disabled_[kFeatureNamesBytes] = "";
  char enabled_[kFeatureNamesBytes] = "";
};

/// Devices to try, in order.
struct DeviceChoices {
  struct One {
    DeviceKind kind;
    uint32_t number;  ///< of a Vulkan device, from 1
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

/// The device of this name and driver, then the others that Vulkan has, the fastest kind first, then the CPU.
/// `with_cpu`: that, too. `with_same`: not if it is known to be of no use.
DeviceChoices devicesAfter(const char* device, const char* driver, const LoadOptions& asked_for,
                           bool with_same, bool with_cpu, const Log& log);

/// Whether ModelInfo.device is the CPU.
bool isCpuName(const char* device);

/// Errors of a device count as warnings while it is only tried. Thread-safe.
class DeviceLog {
 public:
  void init(const Log& to) { to_ = to; }
  /// Valid as long as this is there.
  Log log() { return {handOn, this, nullptr}; }
  void tries(bool on) { tries_ = on; }

 private:
  static void handOn(oriel_log_level level, const char* message, void* user);

  Log to_;
  std::atomic<bool> tries_{false};
};

}  // namespace oriel_internal
