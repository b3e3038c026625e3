#include "api/calibration.h"

#include <cmath>
#include <cstdio>

namespace oriel {
namespace {

constexpr size_t kMaxPath = 4096;

size_t readPiece(void* file, void* buffer, size_t capacity) {
  return static_cast<InputFile*>(file)->read(buffer, capacity);
}

// Null: nothing is wrong with it.
const char* faultOf(InputFile* input, const MappedFile& model, uint32_t n_layers, CalibrationFile* file) {
  switch (readCalibrationFile({readPiece, input}, file)) {
    case CalibrationFault::kNotOne:
      return "is not a calibration";
    case CalibrationFault::kVersion:
      return "has a version that is not known here";
    case CalibrationFault::kConstant:
      return "has a constant that cannot be a measurement";
    case CalibrationFault::kNone:
      break;
  }
  if (file->model_bytes != model.bytes() ||
      file->model_hash != hashOfEnds(model.data(), model.bytes())) {
    return "was measured on another file";
  }
  return file->constants.layer_count == 0 || file->constants.layer_count == n_layers
             ? nullptr
             : "has another number of layers than the model";
}

}  // namespace

Status findCalibration(const char* model_path, const MappedFile& model, uint32_t n_layers, const Log& log,
                       oriel_options* options, CalibrationFile* storage) {
  const char* path = options->calibration_file;
  const bool beside = path == nullptr;
  if (options->calibration != nullptr || (!beside && path[0] == '\0')) {
    return kOk;
  }
  char beside_path[kMaxPath];
  if (beside) {
    const int length = std::snprintf(beside_path, sizeof(beside_path), "%s.calibration.json", model_path);
    if (length < 0 || static_cast<size_t>(length) >= sizeof(beside_path)) {
      return kOk;  // nor could anybody have written one there
    }
    path = beside_path;
  }
  InputFile input;
  bool missing = false;
  const bool open = input.open(path, &missing);
  if (!open && !beside) {
    return log.fail(ORIEL_ERROR_IO, "the calibration %.600s cannot be read: check the path and its access rights",
                    path);
  }
  const char* const fault =
      open ? faultOf(&input, model, n_layers, storage) : missing ? nullptr : "cannot be read";
  if (fault != nullptr && beside) {
    log.write(ORIEL_LOG_WARNING, "%.600s %s: measure again with `oriel calibrate`", path, fault);
  } else if (fault != nullptr) {
    return log.fail(ORIEL_ERROR_FORMAT, "%.600s %s: measure again with `oriel calibrate`", path, fault);
  } else if (open) {
    options->calibration = &storage->constants;
  }
  return kOk;
}

bool readCalibration(const oriel_calibration* given, LossModel* loss) {
  oriel_calibration measured;
  if (!readOptions(given, &measured) || (measured.layers == nullptr) != (measured.layer_count == 0)) {
    return false;
  }
  const struct {
    double measured;
    double* constant;
  } constants[] = {{measured.forget_scale, &loss->forget_scale},
                   {measured.forget_power, &loss->forget_power},
                   {measured.keys_int8, &loss->keys_int8},
                   {measured.keys_int4, &loss->keys_int4},
                   {measured.values_int8, &loss->values_int8},
                   {measured.values_int4, &loss->values_int4},
                   {measured.kl_limit, &loss->kl_limit}};
  for (const auto& entry : constants) {
    if (!std::isfinite(entry.measured) || entry.measured < 0) {
      return false;
    }
    if (entry.measured != 0) {
      *entry.constant = entry.measured;
    }
  }
  for (uint32_t layer = 0; layer < measured.layer_count; ++layer) {
    const oriel_layer_calibration& costs = measured.layers[layer];
    for (const double cost :
         {costs.keys_int8, costs.keys_int4, costs.values_int8, costs.values_int4}) {
      if (!std::isfinite(cost) || cost < 0) {
        return false;
      }
    }
  }
  loss->layers = measured.layers;
  return true;
}

}  // namespace oriel
