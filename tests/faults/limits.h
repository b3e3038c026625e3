// What the layer does besides failing single calls: a device of little memory, slow ones, and ones that are recovered from.
#pragma once

#include <string>
#include <vector>

#include "faults/world.h"

namespace oriel_internal::test {

struct Limit {
  const char* name;
  size_t devices;      ///< of Vulkan that it needs
  oriel_status comes;  ///< of the call that meets it
  bool lost;
  /// What is wrong, or "".
  std::string (*check)(const Device& device);
};
/// For a device behind the layer.
const std::vector<Limit>& limits();

}  // namespace oriel_internal::test
