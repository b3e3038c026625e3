// Shortening of layers' windows, with scores from a formula.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "apps/oriel/measure/window_search.h"

namespace cli {
namespace {

// Alone layer k costs 11 - k, except for two whose loss is NaN.
TEST(WindowSearch, layers_whose_loss_is_no_number_cost_most) {
  constexpr uint32_t kLayers = 11;
  std::vector<uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  size_t calls = 0;
  const ScoreWindows score = [&](uint32_t, const std::vector<uint8_t>& shares) {
    if (++calls > kLayers) {  // of groups
      double sum = 0;
      for (const uint8_t share : shares) {
        sum += share == 0 ? 0 : 256 - share;
      }
      return sum;
    }
    for (uint32_t k = 0; k < kLayers; ++k) {
      if (shares[k] != 0) {
        return k == 4 || k == 7 ? std::numeric_limits<double>::quiet_NaN()
                                : double{kLayers} - static_cast<double>(k);
      }
    }
    return 0.0;
  };
  const std::vector<MeasuredWindows> found = searchWindows(kLayers, layers, 512, score);
  ASSERT_FALSE(found.empty());
  // In order of cost 10 9 8 6 5 3 2 1 0, then 4 and 7: groups take 1, 1, 2, 1, 1, 2, 1 and 2 of them.
  const std::vector<std::vector<uint32_t>> groups = {{10}, {9},    {8, 6}, {5},
                                                     {3},  {2, 1}, {0},    {4, 7}};
  for (const MeasuredWindows& windows : found) {
    for (const std::vector<uint32_t>& group : groups) {
      EXPECT_EQ(windows.shares[group.front()], windows.shares[group.back()]) << group.front();
    }
  }
}

}  // namespace
}  // namespace cli
