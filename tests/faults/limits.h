// The layer's other abilities: a device with little memory, slow ones, and recoverable ones.
#pragma once

#include <string>
#include <vector>

#include "faults/world.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
