// Groups of a model's layers, as text and JSON.
#pragma once

#include <string>

#include "output.h"

namespace cli {

/// All sliding-window layers together, with their longest window. `ring_tokens` and `bytes` only for a plan's groups.
struct SlidingLayers {
  uint64_t layers = 0;
  uint64_t window_tokens = 0;
  uint64_t ring_tokens = 0;
  uint64_t bytes = 0;
};
SlidingLayers slidingLayers(const Json& groups);

/// "; 10 of short convolutions" and the like: all groups except the session's. May be empty.
std::string groupsText(const Json& groups);

}  // namespace cli
