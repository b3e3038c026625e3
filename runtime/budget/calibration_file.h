// What `oriel calibrate` writes: JSON with a version, the model it was measured on, the constants and what each
// layer costs alone. Reads exactly that and skips what it does not know. Must never know where the text comes
// from: it may be anything, of any length.
#pragma once

#include "base/limits.h"
#include "budget/loss.h"

namespace oriel_internal {

/// The text, piece by piece: up to `capacity` bytes into `buffer`; 0: the end.
struct TextSource {
  size_t (*read)(void* context, void* buffer, size_t capacity) = nullptr;
  void* context = nullptr;
};

/// As written. Points into itself: do not copy.
struct CalibrationFile {
  uint64_t model_bytes = 0;  ///< size of the model's file
  uint64_t model_hash = 0;   ///< EndsHash of it
  Calibration constants;
  LayerCalibration layers[kMaxLayers];
  WindowProfile profiles[kMaxWindowProfiles];
};

enum class CalibrationFault {
  kNone,
  kNotOne,    ///< not JSON, not whole, or without the parts that make it a calibration
  kVersion,   ///< of a version that is not known here
  kConstant,  ///< a constant that no measurement can give
};

/// Reads at most kMaxCalibrationBytes. Allocates nothing. With a fault, `file` holds nothing of use.
CalibrationFault readCalibrationFile(const TextSource& text, CalibrationFile* file);

/// Tells model files apart: FNV-1a of the first and the last MiB, of shorter files twice all of it.
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
