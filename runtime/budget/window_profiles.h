// Windows per layer, as measured by `oriel calibrate`: the loss when some layers see only the latest part of the
// session's window.
#pragma once

#include <cstdint>

#include "base/limits.h"

namespace oriel_internal {

constexpr uint32_t kMaxWindowProfiles = 64;

/// One measurement.
struct WindowProfile {
  double loss = 0;      ///< nats per token above the longest measured window; below 0 is better
  uint32_t window = 0;  ///< tokens seen by layers with the full window
  uint8_t parts[kMaxLayers] = {};  ///< LayerView::parts of each layer

  bool isUniform(uint32_t n_layers) const;
};

/// Profiles with one window for all layers, at several lengths, and profiles with several windows.
struct WindowProfiles {
  const WindowProfile* list = nullptr;
  uint32_t count = 0;
  uint32_t n_layers = 0;

  /// Loss of a uniform window of this many tokens after the sinks. Interpolates by the logarithm of the length; constant
  /// beyond the measurements.
  double uniformLoss(double window) const;
  /// Mean of the layers' windows, as a share of the session's.
  double meanShare(const WindowProfile& profile) const;
  /// Gain of windows per layer, in nats. Below 0 if the profile loses less than one window with the mean length.
  double advantage(const WindowProfile& profile) const;
};

}  // namespace oriel_internal
