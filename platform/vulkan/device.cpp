#include "vulkan/device.h"

#include <cstdio>
#include <cstring>

#include "vulkan/device_caps.h"
#include "vulkan/pipelines.h"
#include "vulkan/vulkan_executor.h"

namespace oriel_internal {
namespace {

constexpr const char* kPortabilityEnumeration = "VK_KHR_portability_enumeration";
constexpr VkInstanceCreateFlags kEnumeratePortability = 1;  // not in headers before 1.3.207

// Rank of a driver among the drivers of one card: higher is better.
int preferenceOfDriver(uint32_t driver_id) {
  switch (driver_id) {
    case driver::kRadv:
    case driver::kNvidiaProprietary:
    case driver::kTurnip:
      return 2;
    case driver::kAmdProprietary:
    case driver::kAmdOpenSource:
    case driver::kQualcommProprietary:
    case driver::kNvk:
      return 1;
    default:
      return 0;
  }
}

bool isSameCard(const DeviceCaps& a, const DeviceCaps& b) {
  return a.vendor_id == b.vendor_id && a.device_id == b.device_id && a.driver_id != b.driver_id &&
         std::memcmp(a.device_uuid, b.device_uuid, VK_UUID_SIZE) == 0;
}

// Higher is better.
int preference(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return 1;
    default:
      return 0;
  }
}

void wrapApi(const ExecutorOptions& options, VulkanApi* api) {
  if (options.driver_tap != nullptr) {
    static_cast<const VulkanDriverTap*>(options.driver_tap)->wrap(api);
  }
}

}  // namespace

bool isPreferred(const DeviceCaps& candidate, const DeviceCaps& to) {
  if (isSameCard(candidate, to)) {
    return preferenceOfDriver(candidate.driver_id) > preferenceOfDriver(to.driver_id);
  }
  return preference(candidate.type) > preference(to.type);
}

Status createInstance(const ExecutorOptions& options, VulkanDevice* device) {
  VulkanApi* api = &device->api;
  if (!loadGlobalFunctions(&device->library, api)) {
    options.log.write(ORIEL_LOG_DEBUG, "no Vulkan 1.1 loader on this system");
    return kOk;
  }
  wrapApi(options, api);
  uint32_t version = VK_API_VERSION_1_0;
  if (api->vkEnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_1) {
    options.log.write(ORIEL_LOG_DEBUG, "the Vulkan loader is older than 1.1");
    return kOk;
  }
  VkApplicationInfo application = {};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "Oriel";
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (findExtensions(*api, VK_NULL_HANDLE, &kPortabilityEnumeration, 1) != 0) {
    info.flags = kEnumeratePortability;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &kPortabilityEnumeration;
  }
  const VkResult result = api->vkCreateInstance(&info, nullptr, &device->instance);
  if (result < 0) {
    device->instance = VK_NULL_HANDLE;
  }
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    options.log.write(ORIEL_LOG_DEBUG, "no Vulkan driver on this system");
    return kOk;
  }
  if (result < 0) {  // some loaders report out-of-memory for an unreadable manifest
    return options.log.fail(ORIEL_ERROR_NO_DEVICE,
                            "Vulkan cannot be started (result %d): check the driver's manifest, "
                            "VK_DRIVER_FILES and VK_ICD_FILENAMES",
                            static_cast<int>(result));
  }
  if (!loadInstanceFunctions(device->instance, api)) {
    return options.log.fail(ORIEL_ERROR_NO_DEVICE,
                            "the Vulkan loader lacks a function of Vulkan 1.1: update it");
  }
  wrapApi(options, api);
  return kOk;
}

Status enumerateDevices(const VulkanDevice& device, const Log& log,
                        VkPhysicalDevice physical[kMaxPhysicalDevices], uint32_t* count) {
  *count = 0;
  if (device.instance == VK_NULL_HANDLE) {
    return kOk;
  }
  *count = kMaxPhysicalDevices;
  const VkResult result = device.api.vkEnumeratePhysicalDevices(device.instance, count, physical);
  if (result < 0) {
    *count = 0;
  }
  if (result == VK_ERROR_INITIALIZATION_FAILED) {
    return kOk;  // loaders return this if no driver finds its hardware
  }
  return checkVk(result, "list Vulkan devices", log);
}

namespace {

/// Watches the part of a start before a device is known.
class VulkanStart {
 public:
  /// `counts`: a start, which may skip Vulkan after a crash; else a query of the devices.
  VulkanStart(const char* dir, bool counts) : dir_(dir), counts_(counts) {}
  VulkanStart(const VulkanStart&) = delete;
  VulkanStart& operator=(const VulkanStart&) = delete;

  /// False if a driver ended a process there. Vulkan must not be initialised this time.
  bool begin() {
    char path[1024];
    if (dir_ == nullptr || !VulkanRecord::makePath(dir_, "contact", path, sizeof(path))) {
      return true;
    }
    const bool died = watch_.begin(path, 0).place == DriverPlace::kInstance;
    const bool may = record_.start(dir_, died, counts_);
    watch_.enter(DriverPlace::kInstance, 0);
    return may;
  }
  void survived() {
    watch_.end();
    record_.survived();
  }

 private:
  const char* const dir_;
  const bool counts_;
  VulkanRecord record_;
  DriverWatch watch_;
};

constexpr const char* kDiedStarting = "a driver ended a process that started Vulkan";

// Reads the verdict of a device. True if the device is refused because it ended a process; `caps` gets the reason.
bool refuse(const ExecutorOptions& options, uint32_t enabled, DeviceCaps* caps, Verdict* verdict) {
  caps->divide_as_gpu = options.divide_as_gpu;
  if (options.verdict != nullptr) {
    return false;
  }
  verdict->read(*caps, options.trust_dir, options.counts_start);
  if (!caps->usable() || !verdict->isDeadly() || options.uses_wrong ||
      (enabled >> kDeviceItself & 1u) != 0) {
    return false;
  }
  char why[224];
  verdict->describe(why, sizeof(why));
  std::snprintf(caps->reason, sizeof(caps->reason), "%s", why);
  return true;
}

}  // namespace

// Chooses the best usable device.
Status VulkanDevice::choose(const ExecutorOptions& options, uint32_t skip, const char* why,
                            uint32_t enabled, uint32_t* counted) {
  const Log& log = options.log;
  VkPhysicalDevice all[kMaxPhysicalDevices];
  uint32_t count = 0;
  ORIEL_TRY(enumerateDevices(*this, log, all, &count));
  if (options.device_number > count) {
    return log.fail(
        ORIEL_ERROR_NO_DEVICE,
        "there is no Vulkan device %u (counted from 0), %u found: choose one that the list "
        "of devices shows",
        options.device_number - 1, count);
  }
  bool distrusted = false;
  char refused[sizeof(caps.name) + sizeof(caps.reason) + 32];
  std::snprintf(refused, sizeof(refused), "%s%s", why[0] != '\0' ? ", " : "", why);
  physical = VK_NULL_HANDLE;
  for (uint32_t i = 0; i < count; ++i) {
    if ((options.device_number != 0 && options.device_number != i + 1) || (skip >> i & 1u) != 0) {
      continue;
    }
    DeviceCaps candidate = readDeviceCaps(api, all[i], enabled);
    Verdict known;
    const bool distrusts = refuse(options, enabled, &candidate, &known);
    if (distrusts && options.counts_start && (*counted >> i & 1u) == 0) {
      *counted |= 1u << i;
      known.starting();
      known.keep(candidate, options.trust_dir);
    }
    distrusted = distrusted || distrusts;
    if (!candidate.usable()) {
      std::snprintf(refused, sizeof(refused), ", %s is refused, %s", candidate.name,
                    candidate.reason);
      log.write(ORIEL_LOG_WARNING, "Vulkan device %u (%s) is not usable: %s", i + 1, candidate.name,
                candidate.reason);
    } else if (options.not_software && candidate.isSoftware()) {
      log.write(ORIEL_LOG_INFO, "Vulkan device %u (%s) is this processor: used only when asked for",
                i + 1, candidate.name);
    } else if (physical == VK_NULL_HANDLE || isPreferred(candidate, caps)) {
      physical = all[i];
      caps = candidate;
      verdict = options.verdict != nullptr ? *options.verdict : known;
      number = i + 1;
    }
  }
  if (physical == VK_NULL_HANDLE && options.device_is_optional) {
    log.write(ORIEL_LOG_INFO, "no usable Vulkan device (%u found)", count);
    return ORIEL_ERROR_NO_DEVICE;
  }
  if (physical == VK_NULL_HANDLE) {
    return log.fail(ORIEL_ERROR_NO_DEVICE,
                    "no usable Vulkan device (%u found%s): %s or use the CPU", count, refused,
                    distrusted ? "test it anew, forget what is kept of it" : "install a driver");
  }
  return kOk;
}

Status VulkanDevice::create(const ExecutorOptions& options, uint32_t skip, const char* why) {
  const Log& log = options.log;
  uint32_t disabled = 0;
  uint32_t enabled = 0;
  ORIEL_TRY(readFeatureNames(options.disabled_features, log, &disabled));
  ORIEL_TRY(readOverrideNames(options.enabled_features, log, &enabled));
  char path[1024];
  const char* const dir = options.trust_dir;
  VulkanStart start(dir, options.counts_start);
  if (!start.begin() && !options.uses_wrong && (enabled >> kDeviceItself & 1u) == 0) {
    if (options.device_is_optional) {
      log.write(ORIEL_LOG_WARNING, "%s: it is not used this time", kDiedStarting);
      return ORIEL_ERROR_NO_DEVICE;
    }
    return log.fail(ORIEL_ERROR_NO_DEVICE,
                    "%s: update the driver, forget what is kept of it or use the CPU",
                    kDiedStarting);
  }
  ORIEL_TRY(createInstance(options, this));
  uint32_t counted = 0;
  for (DriverContact left = {DriverPlace::kInstance, 0}; left.place != DriverPlace::kNone;) {
    ORIEL_TRY(choose(options, skip, why, enabled, &counted));
    left = {};
    if (dir != nullptr && makeCachePath(caps, dir, "contact", path, sizeof(path))) {
      left = watch.begin(path, caps.driver_version);
      if (left.place == DriverPlace::kKeptKernels) {
        dropKeptKernels(caps, dir, log);
        left = {};
      } else if (verdict.died(left)) {
        verdict.keep(caps, dir);  // and choose again: the device may be refused now
        watch.end();
      }
    }
  }
  start.survived();
  const Verdict& known = options.verdict != nullptr ? *options.verdict : verdict;
  if (options.verdict == nullptr) {
    if (options.forgets_wrong) {
      verdict.forgetWrong();
    }
    if (options.counts_start) {
      verdict.starting();
    }
    verdict.keep(caps, dir);
  }
  const uint32_t distrusted =
      options.uses_wrong ? 0 : (known.wrongFeatures() | known.diedFeatures()) & ~enabled;
  if (char what[320]; (distrusted & caps.features) != 0 && options.verdict == nullptr) {
    known.describe(what, sizeof(what));
    log.write(ORIEL_LOG_WARNING, "%s is used with %s", caps.name, what);
  }
  caps.features &= ~(disabled | distrusted);
  if (!caps.has(VulkanFeature::kFloat16)) {
    caps.features &= ~featureBit(VulkanFeature::kCooperativeMatrix);
  }
  if (caps.faults[0] != '\0') {
    log.write(ORIEL_LOG_INFO, "%s: %s", caps.name, caps.faults);
  }
  constexpr uint32_t kOfDevice = featureBit(VulkanFeature::kIntegerDot) |
                                 featureBit(VulkanFeature::kFloat16) |
                                 featureBit(VulkanFeature::kCooperativeMatrix);
  const uint32_t asked = caps.features & kOfDevice;
  watch.enter(DriverPlace::kDevice, asked);
  const Status status = createLogical(log);
  watch.leave(DriverPlace::kDevice, asked);
  return status;
}

Status VulkanDevice::createLogical(const Log& log) {
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue_info = {};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = caps.compute_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  const char* extensions[4 + kMatrixExtensionCount];
  info.ppEnabledExtensionNames = extensions;
  if (caps.needs_portability_subset) {
    extensions[info.enabledExtensionCount++] = kPortabilitySubset;
  }
  if (caps.creation_feedback) {
    extensions[info.enabledExtensionCount++] = kCreationFeedback;
  }
  VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dot = {};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR;
  dot.shaderIntegerDotProduct = VK_TRUE;
  if (caps.has(VulkanFeature::kIntegerDot)) {
    extensions[info.enabledExtensionCount++] = kIntegerDotProduct;
    info.pNext = &dot;
  }
  VkPhysicalDeviceShaderFloat16Int8FeaturesKHR half = {};
  half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR;
  half.shaderFloat16 = VK_TRUE;
  if (caps.has(VulkanFeature::kFloat16)) {
    extensions[info.enabledExtensionCount++] = kFloat16Int8;
    half.pNext = const_cast<void*>(info.pNext);
    info.pNext = &half;
  }
  MatrixFeatures matrices;
  if (caps.has(VulkanFeature::kCooperativeMatrix)) {
    for (const char* name : kMatrixExtensions) {
      extensions[info.enabledExtensionCount++] = name;
    }
    // Known to be there; asked for once more rather than spelled out once more.
    readFeatures(api, physical, matrices.chain(nullptr));
    (void)matrices.keepNeeded();
    info.pNext = matrices.chain(const_cast<void*>(info.pNext));
  }
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups = {};
  subgroups.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT;
  subgroups.computeFullSubgroups = VK_TRUE;
  if (caps.full_subgroups && !caps.has(VulkanFeature::kCooperativeMatrix)) {
    extensions[info.enabledExtensionCount++] = kSubgroupSizeControl;
    subgroups.pNext = const_cast<void*>(info.pNext);
    info.pNext = &subgroups;
  }
  ORIEL_TRY(checkMade(api.vkCreateDevice(physical, &info, nullptr, &device), &device,
                      "create a Vulkan device", log));
  api.vkGetDeviceQueue(device, caps.compute_family, 0, &queue);
  return kOk;
}

void VulkanDevice::share(const VulkanDevice& other, const char* trust_dir) {
  api = other.api;
  physical = other.physical;
  device = other.device;
  queue = other.queue;
  caps = other.caps;
  number = other.number;
  is_shared = true;
  char path[1024];
  if (trust_dir != nullptr && makeCachePath(caps, trust_dir, "contact", path, sizeof(path))) {
    (void)watch.begin(path, caps.driver_version);
  }
}

void VulkanDevice::destroy() {
  if (device != VK_NULL_HANDLE && !is_shared) {
    api.vkDestroyDevice(device, nullptr);
  }
  if (instance != VK_NULL_HANDLE && api.vkDestroyInstance != nullptr) {
    api.vkDestroyInstance(instance, nullptr);
  }
  device = VK_NULL_HANDLE;
  instance = VK_NULL_HANDLE;
}

namespace {

void describeDevice(const DeviceCaps& caps, const char* dir, DeviceInfo* info) {
  std::snprintf(info->name, sizeof(info->name), "%s", caps.name);
  std::snprintf(info->driver, sizeof(info->driver), "%s", caps.driver);
  std::snprintf(info->kind, sizeof(info->kind), "%s", kindName(caps.type));
  describeFeatures(caps, info->features, sizeof(info->features));
  std::snprintf(info->reason, sizeof(info->reason), "%s", caps.reason);
  info->usable = caps.usable() ? 1 : 0;
  info->memory_bytes = caps.memory_bytes;
  info->free_bytes = caps.free_bytes;
  std::snprintf(info->faults, sizeof(info->faults), "%s", caps.faults);
  Verdict verdict;
  verdict.read(caps, dir);
  verdict.describe(info->verdict, sizeof(info->verdict));
  verdict.countKernels(&info->kernels_right, &info->kernels_wrong);
}

}  // namespace

Status listVulkanDevices(const ExecutorOptions& options, DeviceInfo* devices, size_t capacity,
                         size_t* needed) {
  *needed = 0;
  uint32_t disabled = 0;
  uint32_t enabled = 0;
  ORIEL_TRY(readFeatureNames(options.disabled_features, options.log, &disabled));
  ORIEL_TRY(readOverrideNames(options.enabled_features, options.log, &enabled));
  VulkanStart start(options.trust_dir, false);
  if (!start.begin() && (enabled >> kDeviceItself & 1u) == 0) {
    options.log.write(ORIEL_LOG_WARNING, "%s: none of its devices is listed this time",
                      kDiedStarting);
    return kOk;
  }
  VulkanDevice device;
  VkPhysicalDevice physical[kMaxPhysicalDevices];
  uint32_t count = 0;
  Status status = createInstance(options, &device);
  if (status.ok()) {
    status = enumerateDevices(device, options.log, physical, &count);
  }
  *needed = count;
  if (status.ok() && count > capacity) {
    status = ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  for (uint32_t i = 0; status.ok() && i < count; ++i) {
    DeviceCaps caps = readDeviceCaps(device.api, physical[i], enabled);
    Verdict known;
    (void)refuse(options, enabled, &caps, &known);
    const uint32_t distrusted = (known.wrongFeatures() | known.diedFeatures()) & ~enabled;
    caps.features &= ~(disabled | distrusted);
    describeDevice(caps, options.trust_dir, &devices[i]);
    describeLimits(device.api, physical[i], caps, devices[i].limits, sizeof(devices[i].limits));
  }
  start.survived();
  device.destroy();
  return status;
}

}  // namespace oriel_internal
