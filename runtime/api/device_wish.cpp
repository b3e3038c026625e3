#include "api/device_wish.h"

#include <algorithm>
#include <cstring>

#include "api/api.h"
#include "base/path_copy.h"
#if ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#if ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal {
namespace {

// Null if it does not fit.
template <size_t kBytes>
const char* copyOf(const char* text, char (&copy)[kBytes]) {
  const size_t bytes = text != nullptr ? std::strlen(text) + 1 : kBytes + 1;
  return bytes <= kBytes ? static_cast<char*>(std::memcpy(copy, text, bytes)) : nullptr;
}

constexpr uint32_t kMostDevices = 16;

#if ORIEL_VULKAN
// The order of the first choice. Software devices come last, before the CPU.
constexpr const char* kKinds[] = {"discrete", "integrated", "virtual", "other", "software"};

bool softwareIsSlower() {
#if ORIEL_CPU_SIMD
  return cpuExecutorUsable();
#else
  return false;
#endif
}

// Vulkan devices; some may already be in the choices.
struct Found {
  DeviceInfo devices[kMostDevices];
  size_t count = 0;

  bool isSame(size_t i, const char* device, const char* driver) const {
    return devices[i].usable != 0 && std::strcmp(devices[i].name, device) == 0 &&
           std::strcmp(devices[i].driver, driver) == 0;
  }
};

// 1 + the device's index; 0 if not found. Among equal devices it prefers the previous number.
uint32_t numberOf(const Found& found, const char* device, const char* driver, uint32_t number) {
  uint32_t same = 0;
  for (size_t i = found.count; i-- > 0;) {
    if (found.isSame(i, device, driver) && (same == 0 || same != number)) {
      same = static_cast<uint32_t>(i + 1);
    }
  }
  return same;
}

void addVulkan(const Found& found, uint32_t same, bool with_same, DeviceChoices* choices) {
  if (same != 0 && with_same) {
    choices->add(DeviceKind::kVulkan, same);
  }
  for (const char* kind : kKinds) {
    const bool is_software = std::strcmp(kind, "software") == 0;
    for (size_t i = 0; i < found.count && !(is_software && softwareIsSlower()); ++i) {
      const bool fits =
          found.devices[i].usable != 0 && std::strcmp(found.devices[i].kind, kind) == 0;
      if (fits && i + 1 != same) {
        choices->add(DeviceKind::kVulkan, static_cast<uint32_t>(i + 1));
      }
    }
  }
}
#endif

}  // namespace

void DeviceWish::init(const LoadOptions& options, Arena* arena) {
  options_ = options;
  options_.log = nullptr;
  options_.log_user = nullptr;
  options_.progress = nullptr;
  options_.progress_user = nullptr;
  options_.allocator = nullptr;
  options_.calibration = nullptr;
  options_.speed = nullptr;
  options_.error_line = nullptr;
  options_.error_line_bytes = 0;
  options_.f16_layers = nullptr;
  options_.f16_layer_count = 0;
  options_.window_shares = nullptr;
  options_.window_share_count = 0;
  options_.session_windows = nullptr;
  options_.session_window_count = 0;
  options_.calibration_file = nullptr;
  options_.system_prompt = nullptr;
  options_.system_prompt_bytes = 0;
  options_.draft_model = options_.mmproj = nullptr;
  options_.lora = options_.control_vectors = nullptr;
  options_.lora_count = options_.control_vector_count = 0;
  options_.control_layers = nullptr;
  options_.control_layer_count = 0;
  options_.recall_dir = nullptr;
  options_.prepared_dir = folderOrNone(options.prepared_dir) != nullptr
                              ? copyPath(options.prepared_dir, arena)
                              : nullptr;
  prepared_path_ = folderOrNone(options.prepared_dir) != nullptr
                       ? arena->take<char>(kPreparedPathBytes)
                       : nullptr;
  options_.cache_dir = copyOf(options.cache_dir, cache_dir_);
  options_.disabled_features = copyOf(options.disabled_features, disabled_);
  options_.enabled_features = copyOf(options.enabled_features, enabled_);
  options_.prefix_file =
      options.prefix_file != nullptr ? copyPath(options.prefix_file, arena) : nullptr;
}

LoadOptions DeviceWish::on(DeviceKind kind, uint32_t number) const {
  LoadOptions options = options_;
  options.device = kind;
  options.device_number = number;
  return options;
}

bool isCpuName(const char* device) { return std::strcmp(device, "CPU") == 0; }

DeviceChoices devicesAfter(const char* device, const char* driver, const LoadOptions& asked_for,
                           bool with_same, bool with_cpu, const Log& log) {
  DeviceChoices choices;
#if ORIEL_VULKAN
  if (!isCpuName(device)) {
    Found found = {};
    LenientLog lenient(log);
    ExecutorOptions asked;
    asked.log = lenient.log();
    asked.enabled_features = asked_for.enabled_features;  // e.g. a refused device
    if (!listVulkanDevices(asked, found.devices, kMostDevices, &found.count).ok()) {
      found.count = 0;
    }
    addVulkan(found, numberOf(found, device, driver, asked_for.device_number), with_same, &choices);
  }
#else
  (void)device;
  (void)driver;
  (void)asked_for;
  (void)with_same;
  (void)log;
#endif
  if (with_cpu) {
    choices.add(DeviceKind::kCpu);
  }
  return choices;
}

void DeviceLog::handOn(oriel_log_level level, const char* message, void* user) {
  const DeviceLog& self = *static_cast<const DeviceLog*>(user);
  const bool is_try = level == ORIEL_LOG_ERROR && self.tries_;
  self.to_.write(is_try ? ORIEL_LOG_WARNING : level, "%s", message);
}

}  // namespace oriel_internal
