// One fault at a time: which there are, what has to come of each, and what came.
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
  uint64_t nth = 0;    ///< of its calls in the phase, from 1
  uint64_t calls = 0;  ///< how many those are
  int result = 0;      ///< VkResult, errno or kCutShort, ...
  std::string resultName() const;
  std::string text() const;
};

/// What has to come of it.
struct Right {
  bool may_go_on = false;  ///< the call succeeds: what failed is optional, or was done again
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

/// Which calls are failed of so many: all of a few, the first, the last and one between of many.
std::vector<uint64_t> chosen(FaultKind kind, uint64_t calls);
/// With what the call of a site can fail.
std::vector<int> resultsOf(FaultKind kind, const std::string& site);

void arm(const Fault& fault, World* world);
/// Counts only.
void armNothing(World* world);
bool fired(const Fault& fault, const World& world);
void disarm(World* world);
/// Of what was armed last.
std::vector<Sites> seen(const World& world);

}  // namespace oriel_internal::test
