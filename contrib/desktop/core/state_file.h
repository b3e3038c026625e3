// The state as JSON, for tests that drive the window from outside.
#pragma once

#include <array>
#include <map>
#include <string>

#include "planner.h"
#include "state.h"

namespace desktop {

struct StateExtras {
  int active = 0;
  bool dark = false;
  float zoom = 1;
  uint64_t frames = 0;
  std::string draft;
  PlanPreview preview;
  std::map<std::string, std::array<float, 4>> widgets;  ///< x, y, width, height
};

std::string stateJson(const AppState& state, const StateExtras& extras);
/// Appears whole or not at all.
void writeStateFile(const std::string& path, const AppState& state, const StateExtras& extras);

}  // namespace desktop
