// Expected loss of a plan, and the calibration file that it is read from.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "kv/memory.h"

namespace oriel_internal {

// Windows per layer, as measured by `oriel calibrate`: the loss when some layers see only the latest part of the
// session's window.

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

// Expected quality loss of a cache choice, in nats per token against a full f16 cache. Based on published measurements.
// `c`, `beta` and the format costs are priors; a calibration of the model replaces them.

/// Cost of rounding the cache of one layer only: mean KL divergence from an f16 cache, in nats.
struct LayerCalibration {
  double keys_int8;
  double keys_int4;
  double values_int8;
  double values_int4;
};

/// True for a number that a measurement can give. Bounded, so that sums stay finite.
inline bool isMeasurement(double value) { return value >= 0 && value <= 1e100; }

/// Constants of one model as `oriel calibrate` measures them. 0: not measured.
struct Calibration {
  double forget_scale = 0;  ///< forgetting all but the last n tokens costs scale * n^-power
  double forget_power = 0;
  double keys_int8 = 0;  ///< with only this side in this format, in every layer
  double keys_int4 = 0;
  double values_int8 = 0;
  double values_int4 = 0;
  const LayerCalibration* layers = nullptr;  ///< layer_count entries; nullptr: all layers alike
  uint32_t layer_count = 0;
  const WindowProfile* profiles =
      nullptr;  ///< profile_count entries, each for profile_layers layers
  uint32_t profile_count = 0;
  uint32_t profile_layers = 0;
  double kl_limit = 0;
  double state_f16 = 0;  ///< with the states of all layers in this format, against f32
  double state_int8 = 0;
};

struct LossModel {
  // Forgetting: c * tokens^-beta for a window of that many tokens. Fitted to perplexity against context of Llama-2-7B
  // (beta .72, c 9.9); Falcon gives beta .55, Pythia .50.
  double forget_scale = 9.9;
  double forget_power = 0.72;
  // Rounding: mean KL divergence by side and format. Llama-3-8B with llama.cpp's cache formats: K8V8 .00098, K8V4
  // .0051; 4-bit keys .031 without a rotation, .3 of that with one.
  double keys_int8 = 0.0009;
  double keys_int4 = 0.0094;
  double values_int8 = 0.0001;
  double values_int4 = 0.0041;
  // Recurrent states against f32: notes/recurrent-memory.md, rounded up.
  double state_f16 = 0.001;
  double state_int8 = 0.05;
  /// Distribution of the first four constants over layers, one entry each; nullptr: all alike.
  const LayerCalibration* layers = nullptr;
  /// Measured costs of windows per layer. If empty, forget_scale and forget_power describe windows.
  WindowProfiles profiles;
  /// Beyond this rounding the sum above no longer holds, so such formats are never chosen. At a mean divergence of 0.1
  /// nats one token in seven or eight is chosen differently, and measured losses (docs/decisions/013-budget.md) rise steeply soon
  /// after.
  double kl_limit = 0.1;
  // Per doubling beyond the trained context. Quality collapses there, so this only has to exceed the cost of any window
  // inside.
  double beyond_trained = 0.5;

  /// Scales the key priors, which assume heads of 128 values, to this model's heads. To single out one token a score
  /// must reach a fixed size in any head. A score is at most rms(q) * rms(k) * sqrt(head_dim), and rounding shifts it by
  /// rms(q) * rms(k) times the relative error. The divergence follows the square of the relative shift, so it goes with
  /// 1 / head_dim. If layers differ, the mean is used.
  static double keyPriorScale(const ModelDesc& model);

  double keys(KvFormat format) const {
    return format == KvFormat::kF16 ? 0 : format == KvFormat::kInt8 ? keys_int8 : keys_int4;
  }
  double values(KvFormat format) const {
    return format == KvFormat::kF16 ? 0 : format == KvFormat::kInt8 ? values_int8 : values_int4;
  }
  /// Expected cost of rounding only, for keys and for values.
  double roundingOfKeys(const CacheFormats& formats, const ModelDesc& model) const;
  double roundingOfValues(const CacheFormats& formats, const ModelDesc& model) const;
  /// 0 for models without states.
  double roundingOfStates(const CacheFormats& formats, const ModelDesc& model) const;
  /// Expected loss of `sinks` tokens and a window in these formats. Layers see the whole window or, with a profile,
  /// their share. May be below 0 if shorter windows predicted the text better.
  double expected(const CacheFormats& formats, const ModelDesc& model, uint32_t sinks,
                  uint32_t window, const WindowProfile* profile = nullptr) const;

 private:
  double forgetting(uint32_t sinks, uint32_t window, const WindowProfile* profile = nullptr) const;
};

// Reads the output of `oriel calibrate`: JSON with a version, the measured model, the constants and the cost of each
// layer. Skips unknown members. Works on any text of any length, from any source.

/// Reads the text in pieces: up to `capacity` bytes into `buffer`; 0 at the end.
struct TextSource {
  size_t (*read)(void* context, void* buffer, size_t capacity) = nullptr;
  void* context = nullptr;
};

/// The file's contents. Points into itself: do not copy.
struct CalibrationFile {
  uint64_t model_bytes = 0;  ///< size of the model file
  uint64_t model_hash = 0;   ///< EndsHash of the model file
  Calibration constants;
  LayerCalibration layers[kMaxLayers];
  WindowProfile profiles[kMaxWindowProfiles];
};

enum class CalibrationFault {
  kNone,
  kNotOne,    ///< not JSON, incomplete, or missing required parts
  kVersion,   ///< unknown version
  kConstant,  ///< a constant that a measurement cannot give
};

/// Reads at most kMaxCalibrationBytes. Does not allocate. After a fault `file` is invalid.
CalibrationFault readCalibrationFile(const TextSource& text, CalibrationFile* file);

/// Identifies model files: FNV-1a of the first and the last MiB; of a shorter file, the whole file twice.
class EndsHash {
 public:
  static constexpr uint64_t kBytes = 1 << 20;
  void add(const uint8_t* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      value_ = (value_ ^ data[i]) * 0x100000001b3;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace oriel_internal
