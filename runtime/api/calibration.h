// Which measurements of the model a plan weighs.
#pragma once

#include "api/api.h"
#include "budget/calibration_file.h"

namespace oriel {

/// Measured constants in place of the priors; null: none. False when one of them cannot be a measurement.
bool readCalibration(const oriel_calibration* given, LossModel* loss);

/// Sets `options->calibration`, where it is null, to what the file says that calibration_file stands for: with
/// null the one beside the model. It then points into `storage`.
Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const Log& log, oriel_options* options, CalibrationFile* storage);

}  // namespace oriel
