#include "budget/loss.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "model/model_desc.h"

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

namespace {

/// Sum over the layers of cost(format) times the layer's share.
template <typename FormatOf, typename CostOf, typename ShareOf>
double sumOverLayers(const ModelDesc& model, const FormatOf& formatOf, const CostOf& costOf,
                     const ShareOf& shareOf) {
  double sum = 0;
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
    double all = 0;
    double rounded = 0;
    for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
      if (!isRounded(model, layer)) {
        continue;
      }
      const double share = shareOf(layer, format);
      all += share;
      rounded += formatOf(layer) == format ? share : 0;
    }
    sum += all > 0 ? costOf(format) * rounded / all : 0;
  }
  return sum;
}

}  // namespace

double LossModel::keyPriorScale(const ModelDesc& model) {
  uint64_t layers = 0;
  uint64_t values = 0;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (isRounded(model, layer)) {
      ++layers;
      values += model.kind(layer).head_dim;
    }
  }
  return values != 0 ? 128.0 * static_cast<double>(layers) / static_cast<double>(values) : 1.0;
}

double LossModel::roundingOfKeys(const CacheFormats& formats, const ModelDesc& model) const {
  return sumOverLayers(
      model, [&](uint32_t layer) { return formats.keys(layer); },
      [&](KvFormat format) { return keys(format); },
      [&](uint32_t layer, KvFormat format) {
        return layers == nullptr           ? 1.0
               : format == KvFormat::kInt8 ? layers[layer].keys_int8
                                           : layers[layer].keys_int4;
      });
}

double LossModel::roundingOfValues(const CacheFormats& formats, const ModelDesc& model) const {
  return sumOverLayers(
      model, [&](uint32_t layer) { return formats.values(layer); },
      [&](KvFormat format) { return values(format); },
      [&](uint32_t layer, KvFormat format) {
        return layers == nullptr           ? 1.0
               : format == KvFormat::kInt8 ? layers[layer].values_int8
                                           : layers[layer].values_int4;
      });
}

double LossModel::roundingOfStates(const CacheFormats& formats, const ModelDesc& model) const {
  return !model.keepsStates() || formats.state == StateFormat::kF32 ? 0
         : formats.state == StateFormat::kF16                       ? state_f16
                                                                    : state_int8;
}

// The loss of windows per layer: the loss with their mean length in every layer, minus the measured gain.
double LossModel::forgetting(uint32_t sinks, uint32_t window, const WindowProfile* profile) const {
  const double mean = profile == nullptr ? window : profiles.meanShare(*profile) * window;
  return forget_scale * std::pow(double{1} * sinks + mean, -forget_power) +
         (profile == nullptr ? 0 : profiles.advantage(*profile));
}

double LossModel::expected(const CacheFormats& formats, const ModelDesc& model, uint32_t sinks,
                           uint32_t window, const WindowProfile* profile) const {
  const uint32_t context_train = model.visibleTrain();
  const uint64_t visible = uint64_t{sinks} + window;
  double loss = forgetting(sinks, window, profile) + roundingOfKeys(formats, model) +
                roundingOfValues(formats, model) + roundingOfStates(formats, model);
  if (context_train != 0 && visible > context_train) {
    loss += beyond_trained * std::log2(static_cast<double>(visible) / context_train);
  }
  return loss;
}

}  // namespace oriel_internal
