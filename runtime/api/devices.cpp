// Which device a model runs on, what is known against it, and the list of all.
#include <cstdio>
#include <cstring>

#include "api/api.h"
#include "exec/features.h"
#include "os/gpu_nodes.h"
#include "os/thread.h"
#if ORIEL_CPU_SIMD
#include "cpu/cpu_executor.h"
#endif
#if ORIEL_VULKAN
#include "selftest/self_test.h"
#include "vulkan/vulkan_executor.h"
#endif

namespace oriel_internal {
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
/// The short test of the self-test, in executors of the device that the model is to run on.
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

// Where nothing may be kept nothing is tested unless it is asked for: it would be at every load.
void trust(const LoadOptions& options, ExecutorUse use, KernelTester* tester,
           ExecutorOptions* executor) {
  executor->enabled_features = options.enabled_features;
  if (rawEnum(options.device_test) == DeviceTest::kNever) {
    return;
  }
  executor->trust_dir = folderOrNone(options.cache_dir);
  executor->counts_start = use == ExecutorUse::kModel;
  executor->test_again = rawEnum(options.device_test) == DeviceTest::kAlways;
  if (use == ExecutorUse::kModel && (executor->trust_dir != nullptr || executor->test_again)) {
    executor->tester = tester;
  }
  executor->uses_wrong = use == ExecutorUse::kSelfTest || use == ExecutorUse::kSelfTestBegins;
  executor->forgets_wrong = use == ExecutorUse::kSelfTestBegins;
  if (executor->uses_wrong) {
    executor->cache_dir = nullptr;  // pipelines of all kernels are nobody's cache
  }
}
#endif

}  // namespace

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
  const int test = rawEnum(options.device_test);
  return test >= DeviceTest::kAuto && test <= DeviceTest::kNever
             ? Status(kOk)
             : log.fail(ORIEL_ERROR_ARGUMENT,
                        "device_test is %d: use one of DeviceTest, 0 to 2", test);
}

Status createExecutor(const LoadOptions& options, ExecutorUse use, const Plan& plan,
                      const ExecutorMemory& memory, const oriel_allocator& allocator,
                      ExpertFetch* experts, const Log& log, const StopCheck* stop,
                      Executor** executor) {
  ExecutorOptions executor_options;
  executor_options.stop = stop;
  executor_options.device_number = options.device_number;
  if (options.device_timeout_ms != 0) {
    executor_options.timeout_ms = options.device_timeout_ms;
  }
  executor_options.cpu_threads = std::min(options.cpu_threads, allowedProcessors());
  executor_options.activation_bits = activationBits(options);
  executor_options.cache_dir = folderOrNone(options.cache_dir);
  executor_options.disabled_features = options.disabled_features;
  executor_options.allocator = &allocator;
  executor_options.log = log;
  executor_options.experts = experts;
#if ORIEL_VULKAN
  ModelKernelTester tester;
  trust(options, use, &tester, &executor_options);
  if (options.device == DeviceKind::kVulkan) {
    return createVulkanExecutor(plan, executor_options, memory, executor);
  }
  if (options.device == DeviceKind::kAuto) {
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
    log.write(ORIEL_LOG_INFO,
              executor_options.not_software
                  ? "no usable Vulkan device that is no software: running on the CPU"
                  : "no usable Vulkan device: running on the CPU");
  }
#else
  (void)use;
  if (options.device == DeviceKind::kVulkan) {
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

Status listDevices(const LoadOptions& options, const Log& log, DeviceInfo* devices,
                   size_t capacity, size_t* needed) {
  constexpr size_t kMaxDevices = 17;
  DeviceInfo found[kMaxDevices] = {};
  size_t count = 0;
#if ORIEL_VULKAN
  ExecutorOptions asked;
  trust(options, ExecutorUse::kProbe, nullptr, &asked);
  asked.disabled_features = options.disabled_features;
  // A machine whose Vulkan does not work still has its CPU.
  LenientLog lenient(log);
  asked.log = lenient.log();
  if (!listVulkanDevices(asked, found, kMaxDevices - 1, &count).ok()) {
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
  *needed = count;
  if (count > capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  // Entries lie as far apart as the caller's struct is long.
  const size_t stride = devices->struct_size;
  for (size_t i = 0; i < count; ++i) {
    DeviceInfo* out =
        reinterpret_cast<DeviceInfo*>(reinterpret_cast<uint8_t*>(devices) + i * stride);
    ORIEL_TRY(checkResult(out, "oriel_device_info", log));
    if (out->struct_size != stride) {
      return ORIEL_ERROR_ARGUMENT;
    }
    writeResult(found[i], out);
  }
  return kOk;
}

}  // namespace

oriel_status oriel_device_list(oriel_log_fn log, void* log_user, DeviceInfo* devices,
                               size_t capacity, size_t* needed) {
  LoadOptions options = {};
    options.log = log;
  options.log_user = log_user;
  return oriel_device_list_with(&options, devices, capacity, needed);
}

oriel_status oriel_device_list_with(const oriel_options* given, DeviceInfo* devices,
                                    size_t capacity, size_t* needed) {
  LoadOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (needed == nullptr || (devices == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  const Log log = logOf(options);
  if (const Status status = checkDeviceTrust(options, log); !status.ok()) {
    return status.code();
  }
  return listDevices(options, log, devices, capacity, needed).code();
}

oriel_status oriel_device_forget(const oriel_options* given) {
  LoadOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (folderOrNone(options.cache_dir) == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
#if ORIEL_VULKAN
  uint32_t left = 0;
  const uint32_t files = forgetVulkanDevices(options.cache_dir, &left);
  if (left != 0) {
    return logOf(options)
        .fail(ORIEL_ERROR_IO,
              "%u of %u files about drivers in %.600s cannot be removed: check its permissions",
              left, left + files, options.cache_dir)
        .code();
  }
  logOf(options).write(ORIEL_LOG_INFO, "%u files about drivers forgotten in %.600s", files,
                       options.cache_dir);
#endif
  return ORIEL_OK;
}
