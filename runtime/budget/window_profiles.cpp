#include "budget/window_profiles.h"

#include <algorithm>
#include <cmath>

#include "model/layer.h"

namespace oriel_internal {

bool WindowProfile::isUniform(uint32_t n_layers) const {
  return std::all_of(parts, parts + n_layers, [](uint8_t part) { return part == 0; });
}

double WindowProfiles::uniformLoss(double window) const {
  const WindowProfile* below = nullptr;
  const WindowProfile* above = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const WindowProfile& point = list[i];
    if (!point.isUniform(n_layers)) {
      continue;
    }
    if (point.window <= window && (below == nullptr || point.window > below->window)) {
      below = &point;
    }
    if (point.window >= window && (above == nullptr || point.window < above->window)) {
      above = &point;
    }
  }
  if (below == nullptr || above == nullptr || below == above) {
    return below != nullptr ? below->loss : above != nullptr ? above->loss : 0;
  }
  const double whole = std::log(static_cast<double>(above->window) / below->window);
  const double part = std::log(window / below->window) / whole;
  return below->loss + part * (above->loss - below->loss);
}

double WindowProfiles::meanShare(const WindowProfile& profile) const {
  uint64_t parts = 0;
  for (uint32_t layer = 0; layer < n_layers; ++layer) {
    parts += profile.parts[layer] == 0 ? kWindowParts : profile.parts[layer];
  }
  return static_cast<double>(parts) / (double{kWindowParts} * std::max(1u, n_layers));
}

double WindowProfiles::advantage(const WindowProfile& profile) const {
  return profile.loss - uniformLoss(meanShare(profile) * profile.window);
}

}  // namespace oriel_internal
