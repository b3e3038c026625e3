// Decides which weights stay in the model's file, by the options or by the available memory.
#pragma once

#include "api/api.h"
#include "budget/loss.h"
#include "oriel/tools.h"

namespace oriel_internal {

// Plans with `on_file` weights left in the file: fills totals, work, host bytes and budget of `prepared`.
struct OnFilePlanner {
  Status (*plan)(void* context, const OnFile& on_file, const Log& log,
                 BudgetRequest* request) = nullptr;
  void* context = nullptr;
};

// Rows of tables stay on file unless the options hold them. For experts, formats and window have priority: each layer
// gets the most slots that do not raise the expected loss, or all experts are held. Stores the chosen plan in
// `prepared`, whose description must be set. Its minimum memory is the smallest over all choices.
Status chooseOnFile(const LoadOptions& options, const Log& log, const OnFilePlanner& planner,
                    const BudgetRequest& request, PreparedModel* prepared);

// Selects the measurements that a plan weighs.

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
