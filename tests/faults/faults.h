// One fault at a time: the list of faults, the expected and the actual results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/world.h"

namespace oriel_internal::test {

enum class FaultKind { kVulkan, kMissing, kAllocation, kFile };

struct Fault {
  FaultKind kind = FaultKind::kVulkan;
  size_t phase = 0;
  std::string site;    ///< the row: a function, a call and its kind of file, "allocate"
  uint64_t nth = 0;    ///< number of the call in the phase, from 1
  uint64_t calls = 0;  ///< how many those are
  int result = 0;      ///< VkResult, errno or kCutShort, ...
  std::string resultName() const;
  std::string text() const;
};

/// The expected result.
struct Right {
  bool may_go_on = false;  ///< the call succeeds: the failed part is optional, or was repeated
  bool may_fail = true;
  oriel_status status = ORIEL_OK;  ///< if it fails
};
Right rightOf(const Fault& fault);

/// Calls that were seen in a phase, by site.
struct Sites {
  FaultKind kind;
  std::string site;
  uint64_t calls;
};

/// The calls to fail: all if few, otherwise the first, the last and one between.
std::vector<uint64_t> chosen(FaultKind kind, uint64_t calls);
/// The possible failures of a site's call.
std::vector<int> resultsOf(FaultKind kind, const std::string& site);

void arm(const Fault& fault, World* world);
/// Counts only.
void armNothing(World* world);
bool fired(const Fault& fault, const World& world);
void disarm(World* world);
/// Calls seen since the last arming.
std::vector<Sites> seen(const World& world);

}  // namespace oriel_internal::test
