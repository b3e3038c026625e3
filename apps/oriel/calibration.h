// The file beside a model that holds what was measured on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// What was measured on one model.
struct Calibration {
  oriel_calibration constants = {};
  std::vector<oriel_layer_calibration> layers;  ///< empty: not measured

  /// For oriel_options, as long as this lives unchanged.
  oriel_calibration option() const {
    oriel_calibration result = constants;
    result.struct_size = sizeof(result);
    result.layers = layers.empty() ? nullptr : layers.data();
    result.layer_count = static_cast<uint32_t>(layers.size());
    return result;
  }
};

/// MODEL.calibration.json
std::string sidecarPath(const std::string& model_path);

/// The constants as the field `constants`; those that are 0 (not measured) are null.
Json calibrationFields(const oriel_calibration& calibration);
/// What each layer costs alone, as the field `layers`.
Json layerFields(const std::vector<oriel_layer_calibration>& layers);

/// Writes a whole sidecar for this model file; `details` are the measurements behind the constants.
void writeSidecar(const std::string& path, const std::string& model_path,
                  const Calibration& calibration, const Json& details);

/// What lies beside the model. Nothing when there is no sidecar; one that is damaged or was made for
/// another model is told of (on terminals, and if `warns`) and not used.
std::optional<Calibration> readSidecar(const std::string& model_path, bool verbose,
                                       bool warns = true);

}  // namespace cli
