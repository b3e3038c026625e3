#include "measure/window_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace cli {
namespace {

constexpr uint32_t kParts = 256;  ///< unit of a window share
constexpr size_t kMostGroups = 8;
constexpr uint32_t kMostHalvings = 5;
constexpr uint32_t kShortest = 16;      ///< tokens
constexpr uint32_t kAloneHalvings = 3;  ///< window used to compare layers

uint32_t partsOf(uint8_t share) { return share == 0 ? kParts : share; }

class Search {
 public:
  Search(uint32_t n_layers, uint32_t longest, const ScoreWindows& score)
      : n_layers_(n_layers), longest_(longest), score_(score) {
    while (most_ < kMostHalvings && longest >> (most_ + 1) >= kShortest) {
      ++most_;
    }
  }

  std::vector<MeasuredWindows> run(const std::vector<uint32_t>& layers) {
    if (layers.empty() || most_ == 0) {
      return {};
    }
    group(layers);
    halvings_.assign(groups_.size(), 0);
    base_ = scoreOf(halvings_);
    std::vector<std::optional<double>> known(
        groups_.size());  // price of the next step, possibly outdated
    std::vector<bool> fresh(groups_.size(), false);
    std::vector<MeasuredWindows> found;
    for (;;) {
      std::optional<size_t> best;
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (halvings_[g] == most_) {
          continue;
        }
        if (!known[g]) {
          known[g] = priceOf(g);
          fresh[g] = true;
        }
        best = !best || *known[g] < *known[*best] ? g : best;
      }
      if (!best) {
        return found;
      }
      if (!fresh
              [*best]) {  // prices only rise as other groups shorten: only the cheapest is updated
        known[*best] = priceOf(*best);
        fresh[*best] = true;
        continue;
      }
      ++halvings_[*best];
      found.push_back(windowsOf(halvings_));
      std::fill(fresh.begin(), fresh.end(), false);
      known[*best].reset();
    }
  }

 private:
  // Makes groups of one layer, or of layers with similar cost.
  void group(std::vector<uint32_t> layers) {
    if (layers.size() > kMostGroups) {
      std::vector<uint32_t> sorted;
      std::vector<double> alone;
      for (const uint32_t layer : layers) {
        std::vector<uint8_t> shares(n_layers_, 0);
        shares[layer] = static_cast<uint8_t>(kParts >> std::min(kAloneHalvings, most_));
        double loss = score_(longest_, shares);
        loss = std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
        const auto at = std::upper_bound(alone.begin(), alone.end(), loss) - alone.begin();
        alone.insert(alone.begin() + at, loss);
        sorted.insert(sorted.begin() + at, layer);
      }
      layers = std::move(sorted);
    }
    const size_t count = std::min(layers.size(), kMostGroups);
    for (size_t g = 0; g < count; ++g) {
      groups_.emplace_back(
          layers.begin() + static_cast<std::ptrdiff_t>(g * layers.size() / count),
          layers.begin() + static_cast<std::ptrdiff_t>((g + 1) * layers.size() / count));
    }
  }

  MeasuredWindows windowsOf(const std::vector<uint32_t>& halvings) {
    const uint32_t least = *std::min_element(halvings.begin(), halvings.end());
    MeasuredWindows windows;
    windows.window_tokens = longest_ >> least;
    windows.shares.assign(n_layers_, 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const uint32_t layer : groups_[g]) {
        windows.shares[layer] =
            static_cast<uint8_t>(halvings[g] == least ? 0 : kParts >> (halvings[g] - least));
      }
    }
    windows.loss_nats = scoreOf(halvings) - base_;
    return windows;
  }

  double scoreOf(const std::vector<uint32_t>& halvings) {
    const auto known = scores_.find(halvings);
    if (known != scores_.end()) {
      return known->second;
    }
    scores_[halvings] = 0;  // windowsOf() reads it
    const MeasuredWindows windows = windowsOf(halvings);
    return scores_[halvings] = score_(windows.window_tokens, windows.shares);
  }

  // Nats per slot saved; steps that improve the model come first.
  double priceOf(size_t g) {
    std::vector<uint32_t> shorter = halvings_;
    ++shorter[g];
    const double more = scoreOf(shorter) - scoreOf(halvings_);
    const double saved = static_cast<double>(groups_[g].size()) *
                         ((longest_ >> halvings_[g]) - (longest_ >> shorter[g]));
    return more > 0 ? more / saved : more;
  }

  const uint32_t n_layers_;
  const uint32_t longest_;
  const ScoreWindows& score_;
  uint32_t most_ = 0;
  double base_ = 0;
  std::vector<std::vector<uint32_t>> groups_;
  std::vector<uint32_t> halvings_;
  std::map<std::vector<uint32_t>, double> scores_;
};

}  // namespace

double MeasuredWindows::meanWindow() const {
  double parts = 0;
  for (const uint8_t share : shares) {
    parts += partsOf(share);
  }
  return window_tokens * parts / (double{kParts} * static_cast<double>(shares.size()));
}

uint32_t MeasuredWindows::shortestWindow() const {
  uint32_t least = kParts;
  for (const uint8_t share : shares) {
    least = std::min(least, partsOf(share));
  }
  return window_tokens * least / kParts;
}

std::vector<MeasuredWindows> searchWindows(uint32_t n_layers, const std::vector<uint32_t>& layers,
                                           uint32_t longest, const ScoreWindows& score) {
  return Search(n_layers, longest, score).run(layers);
}

}  // namespace cli
