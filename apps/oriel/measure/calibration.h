// Writes the file beside a model that holds what was measured on it. The library reads it.
#pragma once

#include <string>
#include <vector>

#include <oriel/tools.h>

#include "measure/window_search.h"
#include "output.h"
#include "result_file.h"

namespace cli {

/// What was measured on one model.
struct Calibration {
  oriel_calibration constants = {};
  std::vector<oriel_layer_calibration> layers;  ///< empty: not measured
  std::vector<MeasuredWindows> windows;         ///< likewise
};

/// MODEL.calibration.json, where the library looks for it.
std::string sidecarPath(const std::string& model_path);

/// The constants as the field `constants`; those that are 0 (not measured) are null.
Json calibrationFields(const oriel_calibration& calibration);
/// What each layer costs alone, as the field `layers`.
Json layerFields(const std::vector<oriel_layer_calibration>& layers);
/// What windows cost, as the field `windows`.
Json windowFields(const std::vector<MeasuredWindows>& windows);

/// A sidecar to be, which is there as a whole once it was written.
class SidecarFile {
 public:
  /// For this model file as it is now. Throws Failure where nothing could be written, or the model cannot be read.
  SidecarFile(const std::string& path, const std::string& model_path);
  /// `details` are the measurements behind the constants.
  void write(const Calibration& calibration, const Json& details);

 private:
  ResultFile file_;
  const Json model_;
};

}  // namespace cli
