// Groups of a model's layers, for people and as JSON.
#pragma once

#include <oriel/oriel.h>

#include <string>

#include "output.h"

namespace cli {

/// All sliding-window layers together; of several windows the longest.
struct SlidingLayers {
  uint32_t layers = 0;
  uint32_t window_tokens = 0;
  uint32_t ring_tokens = 0;
  uint64_t bytes = 0;
};
SlidingLayers slidingLayers(const oriel_layer_group* groups, uint32_t count);
/// What convolutions and states hold, whatever the window is.
uint64_t stateBytes(const oriel_layer_group* groups, uint32_t count);

/// [{"kind", "layers", "window_tokens", ...}]; with `bytes` false without what only a plan knows.
Json groupsJson(const oriel_layer_group* groups, uint32_t count, bool bytes);

/// "; 10 of short convolutions" and the like: groups but the session's. Empty where there are none.
std::string groupsText(const oriel_layer_group* groups, uint32_t count);

}  // namespace cli
