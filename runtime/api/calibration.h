// Selects the measurements that a plan weighs.
#pragma once

#include "api/api.h"
#include "budget/calibration_file.h"
#include "oriel/tools.h"

namespace oriel_internal {

/// False when a constant cannot be a measurement. Null: true.
bool validCalibration(const oriel_calibration* given);

// Copies the constants that are valid and not null.
void readCalibration(const oriel_calibration& given, CalibrationFile* measured);

// Reads the calibration from the options, or else from calibration_file; null selects the file in the model's folder.
// Sets *found to false if the model has no calibration.
Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const LoadOptions& options, const Log& log, CalibrationFile* measured,
                       bool* found);

// Replaces the priors, which assume heads of 128 values, by measured constants.
void useCalibration(const Calibration& measured, const ModelDesc& model, LossModel* loss);

}  // namespace oriel_internal
