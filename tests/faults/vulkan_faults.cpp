#include "faults/file_faults.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "os/os.h"
#include "vulkan/loader.h"

namespace oriel_internal::test {
namespace {

constexpr uint64_t kLittleBytes = 1 << 18;
constexpr uint32_t kSlowMs = 30;

oriel_status does(World& world, const char* phase) {
  return phases()[phaseNumber(phase)].run(world);
}

bool doesAll(World& world, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return does(world, name) == ORIEL_OK; });
}

size_t errorsOf(const World& world) {
  return static_cast<size_t>(
      std::count_if(world.log.lines.begin(), world.log.lines.end(),
                    [](const CapturedLog::Line& line) { return line.level == ORIEL_LOG_ERROR; }));
}

// "" if the condition holds.
std::string unless(bool holds, const char* problem) {
  return holds ? "" : std::string(problem) + " ";
}

std::string afterwards(World* world) {
  world->end();
  return unless(faultLayer()->objects() == 0, "objects are left") +
         unless(world->ledger.live_bytes == 0, "bytes are left") + faultLayer()->complaints();
}

std::string littleMemory(const Device& device) {
  World world(device);
  faultLayer()->capMemory(kLittleBytes);
  char listed[8192];
  size_t needed = 0;
  const std::string heap = "\"memory_bytes\": " + std::to_string(kLittleBytes) + ",";
  std::string problems =
      unless(oriel_device_describe(nullptr, 0, listed, sizeof(listed), &needed) == ORIEL_OK &&
                 std::string(listed).find(heap) != std::string::npos,
             "the heap is listed as it is not");
  problems += unless(does(world, "load") == ORIEL_ERROR_OUT_OF_MEMORY, "loads into nothing");
  problems += unless(errorsOf(world) == 1, "not one line");
  faultLayer()->clear();
  problems += unless(doesAll(world, {"load", "create", "prefill", "decode"}), "does not recover");
  return problems + afterwards(&world);
}

std::string slowFences(const Device& device) {
  World world(device), twin(device);
  std::string problems =
      unless(doesAll(twin, {"load", "create", "prefill", "decode"}), "does not work");
  const std::vector<int32_t> ids = twin.generated;
  twin.end();
  problems += unless(doesAll(world, {"load again", "create", "prefill"}), "does not load");
  faultLayer()->delayFences(kSlowMs);
  const double begin_ms = nowMs();
  problems += unless(does(world, "decode") == ORIEL_OK && world.log.errors().empty(),
                     "slowness is an error");
  problems += unless(nowMs() - begin_ms >= 6 * kSlowMs, "it was not slow");
  problems += unless(world.generated == ids, "other tokens than when it is fast");
  faultLayer()->clear();
  return problems + afterwards(&world);
}

// A device with a short time limit that is still enough on this machine: four times the total work of a twin.
Device hastyAfter(double worked_ms, const Device& device) {
  Device hasty = device;
  hasty.timeout_ms = 500 + static_cast<uint32_t>(4 * worked_ms);
  return hasty;
}

std::string lateFences(const Device& device) {
  World twin(device);
  const double twin_ms = nowMs();
  std::string problems =
      unless(doesAll(twin, {"load again", "create", "prefill"}), "does not work");
  const Device hasty = hastyAfter(nowMs() - twin_ms, device);
  twin.end();
  World world(hasty);
  problems += unless(doesAll(world, {"load again", "create"}), "does not load");
  world.log.clear();
  faultLayer()->delayFences(600000);
  problems += unless(does(world, "prefill") == ORIEL_ERROR_TIMEOUT, "no timeout");
  problems += unless(errorsOf(world) == 1, "not one line");
  const double begin_ms = nowMs();
  problems += unless(does(world, "prefill") == ORIEL_ERROR_DEVICE && errorsOf(world) == 1,
                     "it is not lost at once");
  problems += unless(nowMs() - begin_ms < hasty.timeout_ms, "it waits again");
  faultLayer()->clear();  // it comes back before it is destroyed
  return problems + afterwards(&world);
}

// The session's next output equals that of a twin without a loss.
std::string goesOnAs(World* twin, World* world) {
  twin->generated.clear();
  world->generated.clear();
  std::string problems;
  for (World* const each : {twin, world}) {
    ReplyOptions options;
    options.max_tokens = 8;
    options.greedy = 1;
    options.set("ignore_stop", true);
    const auto keep = [](const oriel_token_event* event, void* user) {
      static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
      return 0;
    };
    problems += unless(oriel_session_generate(each->session, &options, keep, &each->generated,
                                              nullptr) == ORIEL_OK,
                       "does not go on");
  }
  return problems + unless(world->generated == twin->generated, "other tokens than undisturbed");
}

struct Recovering {
  const char* device = "auto";
  bool on_cpu = false;  ///< afterwards
  bool same = true;
};

std::string recoversTo(const Recovering& way, World* world) {
  oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
  world->log.clear();
  const oriel_status status =
      oriel_session_recover(world->session, way.device, 0, nullptr, nullptr, &recovered);
  return unless(status == ORIEL_OK && errorsOf(*world) == 0, "does not recover") +
         unless((recovered.on_cpu != 0) == way.on_cpu,
                "is on another kind of device than expected") +
         unless((recovered.same_device != 0) == way.same, "whether it is the same is not right") +
         unless(recovered.exact == 1, "does not know every token");
}

// A device that hangs and comes back, or never does: then it is skipped, and its memory is leaked.
std::string hangs(const Device& device, bool comes_back) {
  World twin(device);
  const double twin_ms = nowMs();
  std::string problems =
      unless(doesAll(twin, {"load again", "create", "prefill", "decode"}), "does not work");
  const Device hasty = hastyAfter(nowMs() - twin_ms, device);
  World world(hasty);
  problems +=
      unless(doesAll(world, {"load again", "create", "prefill", "decode"}), "does not load");
  faultLayer()->delayFences(600000);
  const int32_t id = 5;
  problems +=
      unless(oriel_session_append(world.session, &id, 1, nullptr, nullptr) == ORIEL_ERROR_TIMEOUT,
             "no timeout");
  if (comes_back) {
    faultLayer()->clear();
    problems += recoversTo({}, &world);
  } else {
    const double begin_ms = nowMs();
    problems += recoversTo({"auto", true, false}, &world);
    problems += unless(nowMs() - begin_ms < hasty.timeout_ms, "waits for what never comes");
    faultLayer()->clear();
  }
  problems += goesOnAs(&twin, &world);
  twin.end();
  world.end();
  return problems + unless(world.ledger.live_bytes == 0, "bytes are left") +
         unless(comes_back == (faultLayer()->objects() == 0), "objects are left, or are not") +
         faultLayer()->complaints();
}

std::string hangsForAWhile(const Device& device) { return hangs(device, true); }

std::string hangsForEver(const Device& device) { return hangs(device, false); }

// From the first Vulkan device to the second, and to the CPU.
std::string otherDevices(const Device& device) {
  World world(device), twin(device);
  std::string problems = unless(doesAll(twin, {"load", "create", "prefill", "decode"}) &&
                                    doesAll(world, {"load again", "create", "prefill", "decode"}),
                                "does not load");
  for (const Recovering& way :
       {Recovering{"vulkan:1", false, false}, Recovering{"vulkan:0", false, false},
        Recovering{"cpu", true, false}}) {
    problems += unless(does(world, "lose") == ORIEL_OK, "cannot be lost");
    problems += recoversTo(way, &world);
    problems += goesOnAs(&twin, &world);
  }
  twin.end();
  return problems + afterwards(&world);
}

}  // namespace

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all = {
      {"little memory", 1, ORIEL_ERROR_OUT_OF_MEMORY, false, littleMemory},
      {"slow fences", 1, ORIEL_OK, false, slowFences},
      {"late fences", 1, ORIEL_ERROR_TIMEOUT, true, lateFences},
      {"recovery on other devices", 2, ORIEL_OK, false, otherDevices},
      {"recovery of one that hangs for a while", 1, ORIEL_OK, false, hangsForAWhile},
      {"recovery of one that hangs for ever", 1, ORIEL_OK, false, hangsForEver},
  };
  return all;
}

namespace {

const OrielVulkanFaults* layer = nullptr;
std::string hidden;
PFN_vkGetInstanceProcAddr real_address = nullptr;
PFN_vkEnumerateInstanceVersion real_version = nullptr;
PFN_vkEnumerateInstanceExtensionProperties real_extensions = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL version(uint32_t* number) {
  const int32_t result = layer->decide("vkEnumerateInstanceVersion");
  return result != 0 ? static_cast<VkResult>(result) : real_version(number);
}

VKAPI_ATTR VkResult VKAPI_CALL extensions(const char* of_layer, uint32_t* count,
                                          VkExtensionProperties* properties) {
  const int32_t result = layer->decide("vkEnumerateInstanceExtensionProperties");
  return result != 0 ? static_cast<VkResult>(result) : real_extensions(of_layer, count, properties);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL address(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = hidden == name ? nullptr : real_address(instance, name);
  if (real != nullptr && std::strcmp(name, "vkEnumerateInstanceVersion") == 0) {
    real_version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(version);
  }
  if (real != nullptr && std::strcmp(name, "vkEnumerateInstanceExtensionProperties") == 0) {
    real_extensions = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(extensions);
  }
  return real;
}

constexpr int kHost = VK_ERROR_OUT_OF_HOST_MEMORY, kDevice = VK_ERROR_OUT_OF_DEVICE_MEMORY,
              kInit = VK_ERROR_INITIALIZATION_FAILED, kLost = VK_ERROR_DEVICE_LOST;

// Where the specification lists more than memory.
const std::map<std::string, std::vector<int>>& special() {
  static const std::map<std::string, std::vector<int>> results = {
      {"vkEnumerateInstanceVersion", {kHost}},
      {"vkEnumerateInstanceExtensionProperties", {kHost, kDevice, VK_ERROR_LAYER_NOT_PRESENT}},
      {"vkCreateInstance", {kHost, kDevice, kInit, VK_ERROR_INCOMPATIBLE_DRIVER}},
      {"vkEnumeratePhysicalDevices", {kHost, kDevice, kInit}},
      {"vkEnumerateDeviceExtensionProperties", {kHost, kDevice, VK_ERROR_LAYER_NOT_PRESENT}},
      {"vkCreateDevice",
       {kHost, kDevice, kInit, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_EXTENSION_NOT_PRESENT, kLost}},
      {"vkAllocateMemory", {kHost, kDevice, VK_ERROR_TOO_MANY_OBJECTS}},
      {"vkMapMemory", {kHost, kDevice, VK_ERROR_MEMORY_MAP_FAILED}},
      {"vkCreateDescriptorPool", {kHost, kDevice, VK_ERROR_FRAGMENTATION}},
      {"vkAllocateDescriptorSets",
       {kHost, kDevice, VK_ERROR_FRAGMENTED_POOL, VK_ERROR_OUT_OF_POOL_MEMORY}},
      {"vkGetPipelineCacheData", {kHost, kDevice, VK_INCOMPLETE}},
      {"vkCreateComputePipelines", {kHost, kDevice, VK_ERROR_INVALID_SHADER_NV}},
      {"vkWaitForFences", {kHost, kDevice, kLost}},
      {"vkQueueSubmit", {kHost, kDevice, kLost}},
  };
  return results;
}

template <typename Function>
struct Returns {
  static constexpr bool kResult = false;
};
template <typename... Arguments>
struct Returns<VkResult(VKAPI_PTR*)(Arguments...)> {
  static constexpr bool kResult = true;
};

VulkanCall callOf(const char* name, bool can_fail) {
  const auto found = special().find(name);
  return {name, found != special().end() ? found->second
                : can_fail               ? std::vector<int>{kHost, kDevice}
                                         : std::vector<int>{}};
}

}  // namespace

const OrielVulkanFaults* loadFaultLayer(const std::string& folder) {
  setenv("VK_ADD_LAYER_PATH", folder.c_str(), 1);
  setenv("VK_INSTANCE_LAYERS", "VK_LAYER_ORIEL_faults", 1);
  setenv("NODEVICE_SELECT", "1", 1);  // Mesa's own layer dies where extensions cannot be listed
  void* const library = dlopen((folder + "/liboriel_fault_layer.so").c_str(), RTLD_NOW);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, "oriel_vulkan_faults");
  if (symbol != nullptr) {
    layer = reinterpret_cast<OrielVulkanFaultsFunction>(symbol)();
  }
  return layer;
}

const OrielVulkanFaults* faultLayer() { return layer; }

void loseAtNextSubmission() { layer->fail("vkQueueSubmit", 1, kLost, 0); }

void hideFunction(const std::string& name) { hidden = name; }

void* watched(const char* name, void* symbol) {
  if (layer == nullptr || symbol == nullptr || std::strcmp(name, "vkGetInstanceProcAddr") != 0) {
    return symbol;
  }
  real_address = reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol);
  return reinterpret_cast<void*>(address);
}

const std::vector<VulkanCall>& vulkanCalls() {
  static const std::vector<VulkanCall> calls = {
#define ORIEL_CALL(name) callOf(#name, Returns<PFN_##name>::kResult),
      ORIEL_VULKAN_GLOBAL_FUNCTIONS(ORIEL_CALL) ORIEL_VULKAN_INSTANCE_FUNCTIONS(ORIEL_CALL)
#undef ORIEL_CALL
  };
  return calls;
}

std::string nameOfVkResult(int result) {
  switch (result) {
#define ORIEL_NAME(name) \
  case VK_##name:        \
    return #name;
    ORIEL_NAME(INCOMPLETE)
    ORIEL_NAME(ERROR_OUT_OF_HOST_MEMORY)
    ORIEL_NAME(ERROR_OUT_OF_DEVICE_MEMORY)
    ORIEL_NAME(ERROR_INITIALIZATION_FAILED)
    ORIEL_NAME(ERROR_DEVICE_LOST)
    ORIEL_NAME(ERROR_MEMORY_MAP_FAILED)
    ORIEL_NAME(ERROR_LAYER_NOT_PRESENT)
    ORIEL_NAME(ERROR_EXTENSION_NOT_PRESENT)
    ORIEL_NAME(ERROR_INCOMPATIBLE_DRIVER)
    ORIEL_NAME(ERROR_TOO_MANY_OBJECTS)
    ORIEL_NAME(ERROR_FRAGMENTED_POOL)
    ORIEL_NAME(ERROR_OUT_OF_POOL_MEMORY)
    ORIEL_NAME(ERROR_FRAGMENTATION)
    ORIEL_NAME(ERROR_INVALID_SHADER_NV)
#undef ORIEL_NAME
    default:
      return std::to_string(result);
  }
}

}  // namespace oriel_internal::test
