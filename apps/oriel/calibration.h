// The file beside a model that holds what was measured on it.
#pragma once

#include <optional>
#include <string>

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// MODEL.calibration.json
std::string sidecarPath(const std::string& model_path);

/// The constants as the field `constants`; those that are 0 (not measured) are null.
Json calibrationFields(const oriel_calibration& calibration);

/// Writes a whole sidecar for this model file; `details` are the measurements behind the constants.
void writeSidecar(const std::string& path, const std::string& model_path,
                  const oriel_calibration& calibration, const Json& details);

/// What lies beside the model. Nothing when there is no sidecar; one that is damaged or was made for
/// another model is told of (on terminals) and not used.
std::optional<oriel_calibration> readSidecar(const std::string& model_path, bool verbose);

}  // namespace cli
