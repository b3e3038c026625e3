// The device of the device tests.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "oriel/oriel.h"
#include "support/timing.h"

namespace oriel_internal::test {

inline bool& targetSlot() {
  static bool on_vulkan = false;
  return on_vulkan;
}
inline void setTarget(bool on_vulkan) { targetSlot() = on_vulkan; }
inline bool onVulkan() { return targetSlot(); }
/// For Options.device.
inline const char* targetDevice() { return onVulkan() ? "vulkan" : "cpu"; }
/// Optional Vulkan features disabled for the whole run: the environment's ORIEL_DISABLE.
inline const char* disabledFeatures() { return std::getenv("ORIEL_DISABLE"); }
/// Runs every case of large tests: the environment's ORIEL_TEST_ALL (set by scripts/test.sh --all).
inline bool allCases() { return std::getenv("ORIEL_TEST_ALL") != nullptr; }
/// True if an ordinary run leaves a case to another device, or to the other of a device's two paths. Software drivers
/// compile for a second, so each has one case of five. The environment's ORIEL_TEST_SHARE gives the share of a device's
/// first path; the CPU runs all.
inline bool isOthersTurn(size_t number, bool second_path) {
  const char* const share = std::getenv("ORIEL_TEST_SHARE");
  const size_t own = (share != nullptr ? std::strtoul(share, nullptr, 10) : 0) + second_path;
  return onVulkan() && !allCases() && number % 5 != own % 5;
}

}  // namespace oriel_internal::test
