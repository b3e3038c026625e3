#include "faults/faults.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "faults/file_faults.h"
#include "faults/vulkan_faults.h"
#include "vulkan/loader.h"

namespace oriel_internal::test {
namespace {

/// More calls of one site than this in one phase are failed at three places. A model that a GPU runs takes a while to
/// load again.
constexpr uint64_t kAFew = 6, kMany = 64;

bool isOneOf(const std::string& text, std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](const char* one) { return text == one; });
}

Right goesOn() { return {true, false, ORIEL_OK}; }
Right fails(oriel_status status) { return {false, true, status}; }
Right either(oriel_status status) { return {true, true, status}; }

// docs/api.md: refused memory; an unusable device; a lost device, or a driver failure.
Right rightOfVulkan(const Fault& fault) {
  if (isOneOf(fault.site, {"vkEnumerateInstanceExtensionProperties", "vkGetPipelineCacheData"})) {
    return goesOn();  // extensions and kept kernels are extras
  }
  if (isOneOf(fault.site, {"vkEnumerateInstanceVersion", "vkCreateInstance"}) ||
      (fault.site == "vkEnumeratePhysicalDevices" &&
       fault.result == VK_ERROR_INITIALIZATION_FAILED)) {
    return fails(ORIEL_ERROR_NO_DEVICE);
  }
  const bool memory =
      fault.result == VK_ERROR_OUT_OF_HOST_MEMORY || fault.result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const Right right = fails(memory ? ORIEL_ERROR_OUT_OF_MEMORY : ORIEL_ERROR_DEVICE);
  if (fault.site == "vkWaitForFences" && memory) {
    return goesOn();  // asked again
  }
  // For a cache: first the stored data, then an empty one. Extensions are optional, too, but the loader also asks for
  // them and then makes no device.
  return isOneOf(fault.site, {"vkCreatePipelineCache", "vkEnumerateDeviceExtensionProperties"})
             ? either(right.status)
             : right;
}

// Files named by the app must be accessible; all others are optional, or have an alternative.
Right rightOfFile(const Fault& fault) {
  const size_t space = fault.site.find(' ');
  const std::string call = fault.site.substr(0, space);
  const std::string kind = space == std::string::npos ? "" : fault.site.substr(space + 1);
  if (call == "dlsym" && kind.empty()) {
    // Between two loads of the device its kernels are tested in a third; if that fails, it is used untested.
    const bool test =
        fault.phase == phaseNumber("load") && fault.nth != 1 && fault.nth != fault.calls;
    return test ? goesOn() : fails(ORIEL_ERROR_NO_DEVICE);
  }
  if (call == "dlopen") {  // its second name may be there
    return either(ORIEL_ERROR_NO_DEVICE);
  }
  if (fault.result == EINTR || fault.result == kCutShort ||
      !isOneOf(kind, {"model", "snapshot", "spill"}) ||
      isOneOf(call, {"close", "posix_fadvise64", "unlink", "unlinkat", "opendir", "readdir64",
                     "closedir", "fstatat64", "openat64", "flock", "link"})) {
    return goesOn();
  }
  const bool new_name = kind != "model" && (call == "fstat64" || fault.result == ENOENT);
  return new_name ? either(ORIEL_ERROR_IO) : fails(ORIEL_ERROR_IO);
}

// Calls that list devices, before one is made.
bool isOfAList(const std::string& site) {
  return isOneOf(site, {"vkEnumerateInstanceVersion", "vkCreateInstance",
                        "vkEnumeratePhysicalDevices", "dlsym"});
}

Right rightWherever(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kVulkan:
      return rightOfVulkan(fault);
    case FaultKind::kMissing:
      return fails(ORIEL_ERROR_NO_DEVICE);
    case FaultKind::kAllocation:
      return fails(ORIEL_ERROR_OUT_OF_MEMORY);
    case FaultKind::kFile:
      return rightOfFile(fault);
  }
  return {};
}

}  // namespace

std::string Fault::resultName() const {
  switch (kind) {
    case FaultKind::kVulkan:
      return nameOfVkResult(result);
    case FaultKind::kFile:
      return nameOfFileResult(result);
    case FaultKind::kMissing:
      return "is not there";
    case FaultKind::kAllocation:
      return "null";
  }
  return "?";
}

std::string Fault::text() const {
  return std::string(phases()[phase].name) + ": " + site + " " + std::to_string(nth) + " of " +
         std::to_string(calls) + ", " + resultName();
}

// Nothing has a status before a device is destroyed. A plan lists the devices only for its default memory, and takes the
// system's where it cannot. A recovery that cannot list them still tries to make one.
Right rightOf(const Fault& fault) {
  if (fault.phase == phaseNumber("destroy") ||
      (fault.phase == phaseNumber("describe") && isOfAList(fault.site))) {
    return goesOn();
  }
  const Right right = rightWherever(fault);
  const bool lists = fault.phase == phaseNumber("recover") && isOfAList(fault.site) &&
                     2 * fault.nth <= fault.calls;
  return lists ? either(right.status) : right;
}

std::vector<uint64_t> chosen(FaultKind kind, uint64_t calls) {
  std::vector<uint64_t> all;
  for (uint64_t n = 1; n <= calls; ++n) {
    if (calls <= (kind == FaultKind::kVulkan ? kAFew : kMany) || n == 1 || n == (calls + 1) / 2 ||
        n == calls) {
      all.push_back(n);
    }
  }
  return all;
}

std::vector<int> resultsOf(FaultKind kind, const std::string& site) {
  if (kind == FaultKind::kVulkan) {
    for (const VulkanCall& call : vulkanCalls()) {
      if (call.name == site) {
        return call.results;
      }
    }
    return {};
  }
  if (kind == FaultKind::kFile) {
    for (const FileCall& call : fileCalls()) {
      if (site == call.name || site.rfind(std::string(call.name) + " ", 0) == 0) {
        return call.results;
      }
    }
    return {};
  }
  return {0};
}

void armNothing(World* world) {
  world->ledger.calls = 0;
  world->ledger.refuse_nth = 0;
  if (faultLayer() != nullptr) {
    faultLayer()->clear();
  }
  FileFaults::all().arm();
}

void arm(const Fault& fault, World* world) {
  armNothing(world);
  switch (fault.kind) {
    case FaultKind::kVulkan:
      faultLayer()->fail(fault.site.c_str(), fault.nth, fault.result, 0);
      break;
    case FaultKind::kMissing:
      hideFunction(fault.site);
      break;
    case FaultKind::kAllocation:
      world->ledger.refuse_nth = fault.nth;
      break;
    case FaultKind::kFile:
      FileFaults::all().arm(fault.site, fault.nth, fault.result);
      break;
  }
}

bool fired(const Fault& fault, const World& world) {
  switch (fault.kind) {
    case FaultKind::kVulkan:
      return faultLayer()->failed() != 0;
    case FaultKind::kMissing:
      return true;
    case FaultKind::kAllocation:
      return world.ledger.calls >= fault.nth;
    case FaultKind::kFile:
      return FileFaults::all().fired();
  }
  return false;
}

void disarm(World* world) {
  world->ledger.refuse_nth = 0;
  if (faultLayer() != nullptr) {
    faultLayer()->clear();
  }
  hideFunction("");
  FileFaults::all().disarm();
}

std::vector<Sites> seen(const World& world) {
  std::vector<Sites> all;
  if (faultLayer() != nullptr) {
    faultLayer()->visit(
        [](const char* function, uint64_t calls, void* user) {
          static_cast<std::vector<Sites>*>(user)->push_back({FaultKind::kVulkan, function, calls});
        },
        &all);
  }
  for (const auto& [site, calls] : FileFaults::all().counts()) {
    all.push_back({FaultKind::kFile, site, calls});
  }
  if (world.ledger.calls != 0) {
    all.push_back({FaultKind::kAllocation, "allocate", world.ledger.calls});
  }
  return all;
}

}  // namespace oriel_internal::test
