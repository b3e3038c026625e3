// Writes a model's calibration file, which the library reads.
#pragma once

#include <string>
#include <vector>

#include <oriel/tools.h>

#include "measure/window_search.h"
#include "output.h"

namespace cli {

/// The measurements of one model.
struct Calibration {
  oriel_calibration constants = {};
  std::vector<oriel_layer_calibration> layers;  ///< empty: not measured
  std::vector<MeasuredWindows> windows;         ///< the same
};

/// MODEL.calibration.json, the library's default.
std::string sidecarPath(const std::string& model_path);

/// The constants as the field `constants`; unmeasured ones (0) are null.
Json calibrationFields(const oriel_calibration& calibration);
/// The cost of each layer as the field `layers`.
Json layerFields(const std::vector<oriel_layer_calibration>& layers);
/// The cost of windows as the field `windows`.
Json windowFields(const std::vector<MeasuredWindows>& windows);

/// A calibration file that appears only when it is complete.
class SidecarFile {
 public:
  /// For the current contents of the model file. Throws Failure if it cannot be written, or the model cannot be read.
  SidecarFile(const std::string& path, const std::string& model_path);
  /// `details`: the measurements that the constants are derived from.
  void write(const Calibration& calibration, const Json& details);

 private:
  ResultFile file_;
  const Json model_;
};

}  // namespace cli
