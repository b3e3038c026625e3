#include "api/model_parts.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#if ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif

#if ORIEL_VULKAN
#include "vulkan/vulkan_executor.h"
#endif

#if ORIEL_VULKAN
#include "selftest/self_test.h"
#endif

#include "api/api.h"
#include "api/describe.h"
#include "exec/host_executor.h"
#include "os/os.h"

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

// Chooses a model's device, knows which devices are refused, and lists all devices.

namespace {

const char* cpuDriver() {
#if ORIEL_CPU_SIMD
  if (cpuExecutorUsable()) {
    return cpuExecutorDriver();
  }
#endif
  return "Oriel reference executor";
}

#if ORIEL_VULKAN
// Runs the short self-test in executors of the model's device.
class ModelKernelTester final : public KernelTester {
 public:
  Status test(const Plan& plan, const ExecutorOptions& options) override {
    const TestedDevice device = {make, &options};
    return testKernelsOf(plan, device, *options.allocator, options.log,
                         options.stop != nullptr ? *options.stop : StopCheck());
  }

 private:
  static Status make(const void* context, const Plan& plan, bool, const ExecutorMemory& memory,
                     Executor** executor) {
    return createVulkanExecutor(plan, *static_cast<const ExecutorOptions*>(context), memory,
                                executor);
  }
};

// Without a cache folder a test's verdict cannot be kept, so tests run only on request.
void trust(const LoadOptions& options, ExecutorUse use, KernelTester* tester,
           ExecutorOptions* executor) {
  executor->enabled_features = options.enabled_features;
  if (options.device_test == DeviceTest::kNever) {
    return;
  }
  executor->trust_dir = folderOrNone(options.cache_dir);
  executor->counts_start = use == ExecutorUse::kModel;
  executor->test_again = options.device_test == DeviceTest::kAlways;
  if (use == ExecutorUse::kModel && (executor->trust_dir != nullptr || executor->test_again)) {
    executor->tester = tester;
  }
  executor->uses_wrong = use == ExecutorUse::kSelfTest || use == ExecutorUse::kSelfTestBegins;
  executor->forgets_wrong = use == ExecutorUse::kSelfTestBegins;
  if (executor->uses_wrong) {
    executor->cache_dir = nullptr;  // a self-test does not fill the pipeline cache
  }
}
#endif

}  // namespace

uint32_t activationBits(const LoadOptions& options, const WorkShape& work) {
  if (options.activation_bits != 0) {
    return options.activation_bits;
  }
#if ORIEL_CPU_SIMD
  return work.isLowBit() && !work.model->encoder && cpuGainsFrom8Bits() ? 8 : 16;
#else
  (void)work;
  return 16;
#endif
}

Status checkDeviceTrust(const LoadOptions& options, const Log& log) {
  uint32_t bits = 0;
  for (const char* names : {options.disabled_features, options.enabled_features}) {
    if (names != nullptr && std::strlen(names) >= kFeatureNamesBytes) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "a list of features has %zu bytes, at most %zu can be: name each once",
                      std::strlen(names), kFeatureNamesBytes - 1);
    }
  }
  ORIEL_TRY(readFeatureNames(options.disabled_features, log, &bits));
  ORIEL_TRY(readOverrideNames(options.enabled_features, log, &bits));
  return kOk;
}

Status createExecutor(const LoadOptions& options, ExecutorUse use, const Plan& plan,
                      const ExecutorMemory& memory, const oriel_allocator& allocator,
                      const SharedParts& shared, const Log& log, const StopCheck* stop,
                      Executor** executor) {
  ExecutorOptions executor_options;
  executor_options.stop = stop;
  executor_options.device_number = options.device_number;
  if (options.device_timeout_ms != 0) {
    executor_options.timeout_ms = options.device_timeout_ms;
  }
  executor_options.cpu_threads = std::min(options.cpu_threads, allowedProcessors());
  const uint32_t bits =
      shared.activation_bits != 0 ? shared.activation_bits : options.activation_bits;
  executor_options.activation_bits = bits != 0 ? bits : executor_options.activation_bits;
  executor_options.cache_dir = folderOrNone(options.cache_dir);
  executor_options.disabled_features = options.disabled_features;
  executor_options.allocator = &allocator;
  executor_options.log = log;
  executor_options.experts = shared.experts;
  executor_options.prepared = shared.prepared;
  executor_options.beside = shared.beside;
  const DeviceKind device = shared.beside != nullptr && isCpuName(shared.beside->deviceName())
                                ? DeviceKind::kCpu
                                : options.device;
#if ORIEL_VULKAN
  ModelKernelTester tester;
  trust(options, use, &tester, &executor_options);
  if (device == DeviceKind::kVulkan) {
    return createVulkanExecutor(plan, executor_options, memory, executor);
  }
  if (device == DeviceKind::kAuto) {
    executor_options.device_is_optional = true;
#if ORIEL_CPU_SIMD
    executor_options.not_software = cpuExecutorUsable();
#endif
    if (!executor_options.not_software || mayHaveGpu()) {
      const Status status = createVulkanExecutor(plan, executor_options, memory, executor);
      if (status.code() != ORIEL_ERROR_NO_DEVICE) {
        return status;
      }
    }
    log.write(ORIEL_LOG_INFO, executor_options.not_software
                                  ? "no GPU found, only a software one: running on the CPU"
                                  : "no usable Vulkan device: running on the CPU");
  }
#else
  (void)use;
  if (device == DeviceKind::kVulkan) {
    return log.fail(ORIEL_ERROR_NO_DEVICE, "this build has no Vulkan: use the CPU");
  }
#endif
#if ORIEL_CPU_SIMD
  if (cpuExecutorUsable()) {
    return createCpuExecutor(plan, executor_options, memory, executor);
  }
#endif
  return createReferenceExecutor(plan, executor_options, memory, executor);
}

}  // namespace oriel_internal

using namespace oriel_internal;

namespace {

constexpr size_t kMostListed = 17;

size_t listDevices(const LoadOptions& options, const Log& log, DeviceInfo* found) {
  size_t count = 0;
#if ORIEL_VULKAN
  ExecutorOptions asked;
  trust(options, ExecutorUse::kProbe, nullptr, &asked);
  asked.disabled_features = options.disabled_features;
  // Without working Vulkan the CPU is still listed.
  LenientLog lenient(log);
  asked.log = lenient.log();
  if (!listVulkanDevices(asked, found, kMostListed - 1, &count).ok()) {
    count = 0;
  }
#else
  (void)options;
  (void)log;
#endif
  DeviceInfo& cpu = found[count++];
  copyText("CPU", 3, cpu.name);
  const char* driver = cpuDriver();
  copyText(driver, std::strlen(driver), cpu.driver);
  copyText("cpu", 3, cpu.kind);
  cpu.usable = 1;
  return count;
}

// The usable device of that kind; null: none.
const DeviceInfo* deviceOfKind(const DeviceInfo* found, size_t count, const char* kind,
                               uint32_t number) {
  for (size_t i = 0; i < count; ++i) {
    if (found[i].usable != 0 && std::strcmp(found[i].kind, kind) == 0 &&
        (number == 0 || number == i + 1)) {
      return &found[i];
    }
  }
  return nullptr;
}

void writeDevice(const DeviceInfo& device, JsonWriter* out) {
  out->object();
  out->text("name", device.name);
  out->text("driver", device.driver);
  out->text("kind", device.kind);
  out->text("features", device.features);
  out->flag("usable", device.usable != 0);
  out->text("reason", device.reason);
  out->whole("memory_bytes", device.memory_bytes);
  out->text("limits", device.limits);
  out->text("faults", device.faults);
  out->text("verdict", device.verdict);
  out->whole("kernels_right", device.kernels_right);
  out->whole("kernels_wrong", device.kernels_wrong);
  out->end();
}

Status forgetVerdicts(const LoadOptions& options, const Log& log) {
  if (folderOrNone(options.cache_dir) == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "verdicts are kept in the cache folder: give it (\"cache_folder\")");
  }
#if ORIEL_VULKAN
  uint32_t left = 0;
  const uint32_t files = forgetVulkanDevices(options.cache_dir, &left);
  if (left != 0) {
    return log.fail(
        ORIEL_ERROR_IO,
        "%u of %u files about drivers in %.600s cannot be removed: check its permissions", left,
        left + files, options.cache_dir);
  }
  log.write(ORIEL_LOG_INFO, "%u files about drivers forgotten in %.600s", files, options.cache_dir);
#endif
  return kOk;
}

}  // namespace

DeviceMemory oriel_internal::deviceMemory(const LoadOptions& options) {
  constexpr uint64_t kPercent = 80;  // leaves memory for other programs and the screen
  // Listing loads every Vulkan driver of the system.
  const bool looks =
      options.device == DeviceKind::kAuto ? mayHaveGpu() : options.device == DeviceKind::kVulkan;
  if (!looks) {
    return {};
  }
  constexpr uint64_t kBytes = kMostListed * sizeof(DeviceInfo);
  void* const block = allocateZeroed(defaultAllocator(), kBytes);
  if (block == nullptr) {
    return {};
  }
  const DeviceInfo* const found = static_cast<DeviceInfo*>(block);
  const size_t count = listDevices(options, Log(), static_cast<DeviceInfo*>(block));
  const DeviceInfo* device = nullptr;
  for (const char* kind : {"discrete", "integrated", "virtual", "other", "software"}) {
    // The CPU's own kernels go before a Vulkan device that is the CPU.
    const bool fits = options.device == DeviceKind::kVulkan || std::strcmp(kind, "software") != 0;
    if (device == nullptr && fits) {
      device = deviceOfKind(found, count, kind, options.device_number);
    }
  }
  DeviceMemory memory;
  if (device != nullptr) {
    const bool says = device->free_bytes != 0;
    memory.bytes = (says ? device->free_bytes : device->memory_bytes) / 100 * kPercent;
    memory.is_discrete = std::strcmp(device->kind, "discrete") == 0;
    memory.is_own = says && memory.is_discrete;
  }
  release(defaultAllocator(), block, kBytes);
  return memory;
}

oriel_status oriel_device_describe(const oriel_options* given, uint32_t flags, char* json,
                                   size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed) || (flags & ~ORIEL_DEVICE_FORGET) != 0) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  CallOptions options;
  Status status = takeModelOptions(given, &options);
  const Log log = logOf(options);
  status = status.ok() ? checkDeviceTrust(options, log) : status;
  if (status.ok() && (flags & ORIEL_DEVICE_FORGET) != 0) {
    status = forgetVerdicts(options, log);
  }
  if (!status.ok()) {
    return status.code();
  }
  DeviceInfo found[kMostListed] = {};
  const size_t count = listDevices(options, log, found);
  JsonWriter out(json, capacity);
  out.object();
  out.list("devices");
  for (size_t i = 0; i < count; ++i) {
    writeDevice(found[i], &out);
  }
  out.end();
  out.end();
  return out.finish(needed);
}
