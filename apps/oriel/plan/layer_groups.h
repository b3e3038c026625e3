// Groups of a model's layers, for people and as JSON.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// All sliding-window layers together; of several windows the longest. `ring_tokens` and `bytes` only of a plan's groups.
struct SlidingLayers {
  uint64_t layers = 0;
  uint64_t window_tokens = 0;
  uint64_t ring_tokens = 0;
  uint64_t bytes = 0;
};
SlidingLayers slidingLayers(const Json& groups);

/// "; 10 of short convolutions" and the like: groups but the session's. Empty where there are none.
std::string groupsText(const Json& groups);

}  // namespace cli
