// The calls of the operating system that runtime/os makes and that can fail, by the names that a linker knows them by
// (CMakeLists.txt has the list, too, for --wrap). On 64-bit files: open64 where the C library has two.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "faults/layer/fault_layer.h"
#include "faults/runner.h"

namespace oriel_internal::test {

/// The effect of a call, other than an errno.
constexpr int kCutShort = -1;  ///< does only a part
constexpr int kAtEnd = -2;     ///< finds nothing more
constexpr int kAbsent = -3;    ///< returns null, zero or false

struct FileCall {
  const char* name;
  std::vector<int> results;  ///< each call fails with each of them
};
const std::vector<FileCall>& fileCalls();
/// "EIO", "cut short".
std::string nameOfFileResult(int result);

// The layer's other abilities: a device with little memory, slow ones, and recoverable ones.

struct Limit {
  const char* name;
  size_t devices;      ///< number of Vulkan devices needed
  oriel_status comes;  ///< of the call that fails
  bool lost;
  /// The fault found, or "".
  std::string (*check)(const Device& device);
};
/// For a device with the layer.
const std::vector<Limit>& limits();

// The fault layer (layer/fault_layer.h) of this process, and cases outside layers: functions before an instance exists,
// and missing functions.

/// Loads the layer's library and lets the loader of Vulkan find it; before Vulkan is used. Null: it cannot be loaded.
const OrielVulkanFaults* loadFaultLayer(const std::string& folder);
/// The layer that loadFaultLayer() loaded, or null.
const OrielVulkanFaults* faultLayer();

/// The device is lost when something is sent to it, until clear().
void loseAtNextSubmission();

/// vkGetInstanceProcAddr does not know this function; "": it knows all.
void hideFunction(const std::string& name);

/// Replaces a symbol that the library looks up.
void* watched(const char* name, void* symbol);

struct VulkanCall {
  std::string name;
  std::vector<int> results;  ///< allowed by its specification; none: cannot fail
};
/// All that the library loads.
const std::vector<VulkanCall>& vulkanCalls();
std::string nameOfVkResult(int result);

// Fails the library's calls to the operating system, which the linker redirects here (--wrap). Calls are counted, and
// fail, only while armed and on the arming thread; other threads are not the app's.

class FileFaults {
 public:
  static FileFaults& all();

  /// Files whose paths begin so are of this kind; the longest beginning decides. Others are "other".
  void name(const std::string& path, const std::string& kind) { kinds_[path] = kind; }

  /// Names the kind of an open descriptor.
  void know(int descriptor, const std::string& kind) { descriptors_[descriptor] = kind; }

  /// Counting begins anew; nothing fails.
  void arm() { arm("", 0, 0); }
  /// The nth call of "CALL KIND OF FILE", counted from 1, fails so.
  void arm(const std::string& site, uint64_t nth, int result);
  void disarm() { armed_ = false; }
  bool fired() const { return fired_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

  // For the wrapped calls.
  // 0: perform the call.
  int decide(const char* call, const char* path);
  int decide(const char* call, int descriptor);
  int decide(const char* call) { return decideAt(call, ""); }
  void opened(int descriptor, const char* path);
  void opened(int descriptor, int in_folder);

 private:
  int decideAt(const char* call, const std::string& kind);
  std::string kindOf(const char* path) const;
  void remember(int descriptor, const std::string& kind);

  std::map<std::string, std::string> kinds_;
  std::map<int, std::string> descriptors_;
  std::map<std::string, uint64_t> counts_;
  std::string site_;
  uint64_t nth_ = 0;
  int result_ = 0;
  bool armed_ = false, fired_ = false;
  uintptr_t thread_ = 0;
};

}  // namespace oriel_internal::test
