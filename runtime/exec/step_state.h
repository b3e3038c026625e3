// Slots of a recurrent state in a step, in host memory.
#pragma once

#include <cstdint>

namespace oriel_internal {

struct StepState {
  const uint32_t* read = nullptr;  ///< null: the state is zeros
  uint32_t* written = nullptr;     ///< another slot
};

}  // namespace oriel_internal
