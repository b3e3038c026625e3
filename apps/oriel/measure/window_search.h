// Finds how much of a window each layer needs: shortens one group of layers after the other, where that costs least.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace cli {

/// Windows that were measured.
struct MeasuredWindows {
  uint32_t window_tokens = 0;   ///< of the layers with the longest
  std::vector<uint8_t> shares;  ///< as oriel_options.window_shares
  double loss_nats = 0;         ///< over the longest window in all layers
  double meanWindow() const;
  uint32_t shortestWindow() const;
};

/// Nats a token with such windows.
using ScoreWindows =
    std::function<double(uint32_t window_tokens, const std::vector<uint8_t>& shares)>;

/// From `longest` tokens in every layer to a thirty-second of that, each step half of the window of one group. Layers
/// that are not among `layers` have windows of their own. Beyond 8 of them groups are those that cost alike when they
/// are shortened alone.
std::vector<MeasuredWindows> searchWindows(uint32_t n_layers, const std::vector<uint32_t>& layers,
                                           uint32_t longest, const ScoreWindows& score);

}  // namespace cli
