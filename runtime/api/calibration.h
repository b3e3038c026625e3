// Which measurements of the model a plan weighs.
#pragma once

#include "api/api.h"
#include "budget/calibration_file.h"
#include "oriel/tools.h"

namespace oriel_internal {

/// False when a constant cannot be a measurement. Null: true.
bool validCalibration(const oriel_calibration* given);

/// Copies what is valid and not null.
void readCalibration(const oriel_calibration& given, CalibrationFile* measured);

/// Reads the options' calibration, or else what the file says that calibration_file stands for: with null the one
/// beside the model. *found is false where there is none.
Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const LoadOptions& options, const Log& log, CalibrationFile* measured,
                       bool* found);

/// Measured constants in place of the priors, which are for heads of 128.
void useCalibration(const Calibration& measured, const ModelDesc& model, LossModel* loss);

}  // namespace oriel_internal
