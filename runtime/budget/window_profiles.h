// Windows of different length by layer, as `oriel calibrate` measured them: what a model loses where some layers see only
// the latest part of the session's window.
#pragma once

#include <cstdint>

#include "base/limits.h"

namespace oriel_internal {

constexpr uint32_t kMaxWindowProfiles = 64;

/// One measurement.
struct WindowProfile {
  double loss =
      0;  ///< nats a token more than with the longest window measured; below 0 where it is better
  uint32_t window = 0;             ///< tokens of the layers that see all of it
  uint8_t parts[kMaxLayers] = {};  ///< LayerView::parts of each layer

  bool isUniform(uint32_t n_layers) const;
};

/// Some with one window for all layers, of several lengths, and some with several.
struct WindowProfiles {
  const WindowProfile* list = nullptr;
  uint32_t count = 0;
  uint32_t n_layers = 0;

  /// Of a uniform window that shows so many tokens behind the sinks: between measurements by the logarithm of the
  /// length, beyond them as at the end.
  double uniformLoss(double window) const;
  /// Mean length of the layers' windows, as a part of the session's.
  double meanShare(const WindowProfile& profile) const;
  /// What sharing a window out gains, in nats: below 0 where the profile loses less than a window for all layers that is as
  /// long as the mean of the layers'.
  double advantage(const WindowProfile& profile) const;
};

}  // namespace oriel_internal
