// What a cache choice is expected to cost in quality, in nats of loss per token against a full cache in
// f16. A model of published measurements; `c` and `beta` and the format costs are priors that a
// calibration of the model at hand replaces.
#pragma once

#include <cstdint>

#include "budget/window_profiles.h"
#include "kv/memory.h"

namespace oriel_internal {

/// What rounding the cache of one layer alone costs: mean KL divergence from a cache in f16, in nats.
struct LayerCalibration {
  double keys_int8;
  double keys_int4;
  double values_int8;
  double values_int4;
};

/// A number that a measurement can give: none is so large that sums of them are no number any more.
inline bool isMeasurement(double value) { return value >= 0 && value <= 1e100; }

/// Constants of one model as `oriel calibrate` measures them. 0: not measured.
struct Calibration {
  double forget_scale = 0;  ///< forgetting all but the last n tokens costs scale * n^-power
  double forget_power = 0;
  double keys_int8 = 0;  ///< with only this side in this format, in every layer
  double keys_int4 = 0;
  double values_int8 = 0;
  double values_int4 = 0;
  const LayerCalibration* layers = nullptr;  ///< layer_count entries; nullptr: all alike
  uint32_t layer_count = 0;
  const WindowProfile* profiles =
      nullptr;  ///< profile_count entries, of profile_layers layers each
  uint32_t profile_count = 0;
  uint32_t profile_layers = 0;
  double kl_limit = 0;
  double state_f16 = 0;  ///< with the states of all layers in this format, against f32
  double state_int8 = 0;
};

struct LossModel {
  // Forgetting: c * tokens^-beta for a window of that many tokens. Fitted to perplexity against context
  // of Llama-2-7B (beta .72, c 9.9); Falcon gives beta .55, Pythia .50.
  double forget_scale = 9.9;
  double forget_power = 0.72;
  // Rounding, mean KL divergence by side and format. Llama-3-8B with llama.cpp's cache formats: K8V8
  // .00098, K8V4 .0051; 4-bit keys .031 without a rotation, .3 of that with one.
  double keys_int8 = 0.0009;
  double keys_int4 = 0.0094;
  double values_int8 = 0.0001;
  double values_int4 = 0.0041;
  // Of recurrent states, against f32: docs/recurrent-memory.md, rounded up.
  double state_f16 = 0.001;
  double state_int8 = 0.05;
  /// How layers share the first four of these, one entry each; nullptr: all alike.
  const LayerCalibration* layers = nullptr;
  /// What windows cost, where that was measured by layer; none: forget_scale and forget_power say it all.
  WindowProfiles profiles;
  /// Rounding beyond this is no longer what the sum above describes: such formats are never chosen. At a
  /// mean divergence of 0.1 nats one token in seven or eight is chosen differently, and measured losses
  /// (docs/budgeter.md) fall apart soon behind it.
  double kl_limit = 0.1;
  // Per doubling beyond the trained context; quality falls off a cliff there, so it only has to be
  // dearer than any window inside.
  double beyond_trained = 0.5;

  /// What rounding keys costs with heads of this many values, of the priors above, which are for 128. To
  /// tell one token from all others a score must reach some size, whatever the head; a score is rms(q) *
  /// rms(k) * sqrt(head_dim) at most, and rounding shifts it by rms(q) * rms(k) times the relative error:
  /// so the shift's square, which the divergence follows, goes with 1 / head_dim.
  /// Where layers differ, of their mean.
  static double keyPriorScale(const ModelDesc& model);

  double keys(KvFormat format) const {
    return format == KvFormat::kF16 ? 0 : format == KvFormat::kInt8 ? keys_int8 : keys_int4;
  }
  double values(KvFormat format) const {
    return format == KvFormat::kF16 ? 0 : format == KvFormat::kInt8 ? values_int8 : values_int4;
  }
  /// Expected cost of rounding alone, of keys and of values.
  double roundingOfKeys(const CacheFormats& formats, const ModelDesc& model) const;
  double roundingOfValues(const CacheFormats& formats, const ModelDesc& model) const;
  /// 0 for models without states.
  double roundingOfStates(const CacheFormats& formats, const ModelDesc& model) const;
  /// Expected loss of `sinks` tokens and a window in these formats, whose layers see all of it or, with a profile, as
  /// much as that one says. That may be below 0, where text was predicted better with shorter windows.
  double expected(const CacheFormats& formats, const ModelDesc& model, uint32_t sinks,
                  uint32_t window, const WindowProfile* profile = nullptr) const;

 private:
  double forgetting(uint32_t sinks, uint32_t window, const WindowProfile* profile = nullptr) const;
};

}  // namespace oriel_internal
