#include "api/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace oriel {
namespace {

constexpr size_t kMaxPath = 4096;

/// A file from front to back. Where it cannot be read it ends.
struct Front {
  const InputFile* file;
  uint64_t at = 0;

  static size_t read(void* context, void* buffer, size_t capacity) {
    auto* const front = static_cast<Front*>(context);
    const uint64_t bytes = std::min<uint64_t>(capacity, front->file->bytes() - front->at);
    if (bytes == 0 || !front->file->read(front->at, buffer, bytes, Log()).ok()) {
      return 0;
    }
    front->at += bytes;
    return static_cast<size_t>(bytes);
  }
};

Status hashEnds(const ModelFile& model, const Log& log, uint64_t* hash) {
  EndsHash sum;
  uint8_t block[4096];
  const uint64_t part = std::min(model.bytes(), EndsHash::kBytes);
  for (const uint64_t begin : {uint64_t{0}, model.bytes() - part}) {
    for (uint64_t at = 0; at < part; at += sizeof(block)) {
      const uint64_t bytes = std::min<uint64_t>(sizeof(block), part - at);
      ORIEL_TRY(model.read(begin + at, block, bytes, log));
      sum.add(block, static_cast<size_t>(bytes));
    }
  }
  *hash = sum.value();
  return kOk;
}

// `fault` null: nothing is wrong with it.
Status check(const InputFile& input, const ModelFile& model, uint32_t n_layers, const Log& log,
             CalibrationFile* file, const char** fault) {
  Front front = {&input};
  switch (readCalibrationFile({Front::read, &front}, file)) {
    case CalibrationFault::kNotOne:
      *fault = "is not a calibration";
      return kOk;
    case CalibrationFault::kVersion:
      *fault = "has a version that is not known here";
      return kOk;
    case CalibrationFault::kConstant:
      *fault = "has a constant that cannot be a measurement";
      return kOk;
    case CalibrationFault::kNone:
      break;
  }
  uint64_t hash = file->model_hash;
  if (file->model_bytes == model.bytes()) {
    ORIEL_TRY(hashEnds(model, log, &hash));
  }
  *fault = file->model_bytes != model.bytes() || file->model_hash != hash
               ? "was measured on another file"
           : file->constants.layer_count != 0 && file->constants.layer_count != n_layers
               ? "has another number of layers than the model"
               : nullptr;
  return kOk;
}

Status readNamed(const char* path, const ModelFile& model, uint32_t n_layers, const Log& log,
                 oriel_options* options, CalibrationFile* storage) {
  InputFile input;
  ORIEL_TRY(input.openIfThere(path, log));
  if (!input.isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "the calibration %.600s is not there: check the path", path);
  }
  const char* fault = nullptr;
  ORIEL_TRY(check(input, model, n_layers, log, storage, &fault));
  if (fault != nullptr) {
    return log.fail(ORIEL_ERROR_FORMAT, "%.600s %s: measure again with `oriel calibrate`", path,
                    fault);
  }
  options->calibration = &storage->constants;
  return kOk;
}

}  // namespace

Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const Log& log, oriel_options* options, CalibrationFile* storage) {
  const char* const named = options->calibration_file;
  if (options->calibration != nullptr || (named != nullptr && named[0] == '\0')) {
    return kOk;
  }
  if (named != nullptr) {
    return readNamed(named, model, n_layers, log, options, storage);
  }
  char path[kMaxPath];
  const int length = std::snprintf(path, sizeof(path), "%s.calibration.json", model_path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) {
    return kOk;  // nor could anybody have written one there
  }
  InputFile input;
  const char* fault = "cannot be read";
  if (input.openIfThere(path, Log()).ok()) {
    if (!input.isOpen()) {
      return kOk;
    }
    ORIEL_TRY(check(input, model, n_layers, log, storage, &fault));
  }
  if (fault == nullptr) {
    options->calibration = &storage->constants;
  } else {
    log.write(ORIEL_LOG_WARNING, "%.600s %s: measure again with `oriel calibrate`", path, fault);
  }
  return kOk;
}

bool readCalibration(const oriel_calibration* given, LossModel* loss) {
  oriel_calibration measured;
  if (!readOptions(given, &measured) ||
      (measured.layers == nullptr) != (measured.layer_count == 0)) {
    return false;
  }
  const struct {
    double measured;
    double* constant;
  } constants[] = {
      {measured.forget_scale, &loss->forget_scale}, {measured.forget_power, &loss->forget_power},
      {measured.keys_int8, &loss->keys_int8},       {measured.keys_int4, &loss->keys_int4},
      {measured.values_int8, &loss->values_int8},   {measured.values_int4, &loss->values_int4},
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
