// What the layer does besides failing single calls: a device of little memory, one that is slow, one that is too slow.
#pragma once

#include <string>
#include <vector>

#include "faults/world.h"

namespace oriel::test {

struct Limit {
  const char* name;
  oriel_status comes;  ///< of the call that meets it
  bool lost;
  /// What is wrong, or "".
  std::string (*check)(const Device& device);
};
/// For a device behind the layer.
const std::vector<Limit>& limits();

}  // namespace oriel::test
