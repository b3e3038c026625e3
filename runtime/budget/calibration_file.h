// Reads the output of `oriel calibrate`: JSON with a version, the measured model, the constants and the cost of each
// layer. Skips unknown members. Works on any text of any length, from any source.
#pragma once

#include "base/checked.h"
#include "budget/loss.h"

namespace oriel_internal {

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
