// Which device the device tests run on.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "oriel/oriel.h"
#include "support/patience.h"

namespace oriel_internal::test {

inline bool& targetSlot() {
  static bool on_vulkan = false;
  return on_vulkan;
}
inline void setTarget(bool on_vulkan) { targetSlot() = on_vulkan; }
inline bool onVulkan() { return targetSlot(); }
/// For Options.device.
inline const char* targetDevice() { return onVulkan() ? "vulkan" : "cpu"; }
/// Optional Vulkan features that the whole run does without: the environment's ORIEL_DISABLE.
inline const char* disabledFeatures() { return std::getenv("ORIEL_DISABLE"); }
/// Every case of the tests that have more than an ordinary run has time for: the environment's ORIEL_TEST_ALL
/// (scripts/test.sh --all sets it).
inline bool allCases() { return std::getenv("ORIEL_TEST_ALL") != nullptr; }
/// Whether an ordinary run leaves a case of a test with many to another device, or to the other of a device's two paths:
/// drivers in software compile for a second, so each case runs on one of three. The environment's ORIEL_TEST_SHARE says
/// which share is a device's first path's; the CPU takes all.
inline bool isOthersTurn(size_t number, bool second_path) {
  const char* const share = std::getenv("ORIEL_TEST_SHARE");
  const size_t own = (share != nullptr ? std::strtoul(share, nullptr, 10) : 0) + second_path;
  return onVulkan() && !allCases() && number % 3 != own % 3;
}

}  // namespace oriel_internal::test
