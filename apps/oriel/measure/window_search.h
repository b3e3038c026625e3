// Finds the window that each layer needs: repeatedly shortens the group of layers with the lowest cost.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace cli {

/// Measured windows.
struct MeasuredWindows {
  uint32_t window_tokens = 0;   ///< of the layers with the full window
  std::vector<uint8_t> shares;  ///< as in oriel_options.window_shares
  double loss_nats = 0;         ///< above the longest window in all layers
  double meanWindow() const;
  uint32_t shortestWindow() const;
};

/// Loss in nats per token with these windows.
using ScoreWindows =
    std::function<double(uint32_t window_tokens, const std::vector<uint8_t>& shares)>;

/// Starts with `longest` tokens in every layer and goes down to a thirty-second; each step halves the window of one
/// group. Layers outside `layers` have their own windows. With more than 8 layers, groups join layers of similar cost.
std::vector<MeasuredWindows> searchWindows(uint32_t n_layers, const std::vector<uint32_t>& layers,
                                           uint32_t longest, const ScoreWindows& score);

}  // namespace cli
