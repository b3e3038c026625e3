#include "api/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace oriel_internal {
namespace {

constexpr size_t kMaxPath = 4096;

constexpr char kUnreadable[] = "cannot be read";

// Reads a file from front to back. A read error ends it.
struct Front {
  const InputFile* file;
  uint64_t at = 0;
  bool failed = false;

  static size_t read(void* context, void* buffer, size_t capacity) {
    auto* const front = static_cast<Front*>(context);
    const uint64_t bytes = std::min<uint64_t>(capacity, front->file->bytes() - front->at);
    front->failed =
        front->failed || (bytes != 0 && !front->file->read(front->at, buffer, bytes, Log()).ok());
    if (bytes == 0 || front->failed) {
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

// `fault` is null if the calibration is valid.
Status check(const InputFile& input, const ModelFile& model, uint32_t n_layers, const Log& log,
             CalibrationFile* file, const char** fault) {
  Front front = {&input};
  const CalibrationFault found = readCalibrationFile({Front::read, &front}, file);
  if (front.failed) {
    *fault = kUnreadable;
    return kOk;
  }
  switch (found) {
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
  *fault =
      file->model_bytes != model.bytes() || file->model_hash != hash
          ? "was measured on another file"
      : (file->constants.layer_count != 0 && file->constants.layer_count != n_layers) ||
              (file->constants.profile_count != 0 && file->constants.profile_layers != n_layers)
          ? "has another number of layers than the model"
          : nullptr;
  return kOk;
}

Status readNamed(const char* path, const ModelFile& model, uint32_t n_layers, const Log& log,
                 CalibrationFile* measured) {
  InputFile input;
  ORIEL_TRY(input.openIfThere(path, log));
  if (!input.isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "the calibration %.600s is not there: check the path", path);
  }
  const char* fault = nullptr;
  ORIEL_TRY(check(input, model, n_layers, log, measured, &fault));
  if (fault != nullptr) {
    return log.fail(fault == kUnreadable ? ORIEL_ERROR_IO : ORIEL_ERROR_FORMAT,
                    "%.600s %s: measure again with `oriel calibrate`", path, fault);
  }
  return kOk;
}

}  // namespace

Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const LoadOptions& options, const Log& log, CalibrationFile* measured,
                       bool* found) {
  const char* const named = options.calibration_file;
  *found = options.calibration != nullptr;
  if (*found) {
    readCalibration(*options.calibration, measured);
    return kOk;
  }
  if (named != nullptr && named[0] == '\0') {
    return kOk;
  }
  if (named != nullptr) {
    ORIEL_TRY(readNamed(named, model, n_layers, log, measured));
    *found = true;
    return kOk;
  }
  char path[kMaxPath];
  const int length = std::snprintf(path, sizeof(path), "%s.calibration.json", model_path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) {
    return kOk;  // a descriptor has no folder to hold a calibration
  }
  InputFile input;
  const char* fault = kUnreadable;
  if (input.openIfThere(path, Log()).ok()) {
    if (!input.isOpen()) {
      return kOk;
    }
    ORIEL_TRY(check(input, model, n_layers, log, measured, &fault));
  }
  *found = fault == nullptr;
  if (!*found) {
    log.write(ORIEL_LOG_WARNING, "%.600s %s: measure again with `oriel calibrate`", path, fault);
  }
  return kOk;
}

namespace {

bool validProfiles(const oriel_calibration& options) {
  if ((options.profiles == nullptr) != (options.profile_count == 0) ||
      options.profile_count > kMaxWindowProfiles) {
    return false;
  }
  for (uint32_t i = 0; i < options.profile_count; ++i) {
    const oriel_window_profile& profile = options.profiles[i];
    if (!isMeasurement(std::fabs(profile.loss_nats)) || profile.shares == nullptr ||
        profile.share_count == 0 || profile.share_count > kMaxLayers ||
        profile.share_count != options.profiles[0].share_count || profile.window_tokens == 0 ||
        profile.window_tokens > kMaxWindow) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool validCalibration(const oriel_calibration* given) {
  oriel_calibration options;
  if (!readOptions(given, &options) || (options.layers == nullptr) != (options.layer_count == 0)) {
    return false;
  }
  for (const double constant : {options.forget_scale, options.forget_power, options.keys_int8,
                                options.keys_int4, options.values_int8, options.values_int4,
                                options.kl_limit, options.state_f16, options.state_int8}) {
    if (!isMeasurement(constant)) {
      return false;
    }
  }
  if (!validProfiles(options)) {
    return false;
  }
  for (uint32_t layer = 0; layer < options.layer_count; ++layer) {
    const oriel_layer_calibration& costs = options.layers[layer];
    if (!isMeasurement(costs.keys_int8) || !isMeasurement(costs.keys_int4) ||
        !isMeasurement(costs.values_int8) || !isMeasurement(costs.values_int4)) {
      return false;
    }
  }
  return true;
}

void readCalibration(const oriel_calibration& given, CalibrationFile* measured) {
  oriel_calibration options;
  (void)readOptions(&given, &options);
  Calibration& constants = measured->constants;
  constants.forget_scale = options.forget_scale;
  constants.forget_power = options.forget_power;
  constants.keys_int8 = options.keys_int8;
  constants.keys_int4 = options.keys_int4;
  constants.values_int8 = options.values_int8;
  constants.values_int4 = options.values_int4;
  constants.kl_limit = options.kl_limit;
  constants.state_f16 = options.state_f16;
  constants.state_int8 = options.state_int8;
  constants.layer_count = options.layer_count;
  constants.layers = options.layer_count != 0 ? measured->layers : nullptr;
  // Larger counts than kMaxLayers are refused elsewhere.
  for (uint32_t layer = 0; layer < std::min(options.layer_count, kMaxLayers); ++layer) {
    const oriel_layer_calibration& costs = options.layers[layer];
    measured->layers[layer] = {costs.keys_int8, costs.keys_int4, costs.values_int8,
                               costs.values_int4};
  }
  constants.profile_count = options.profile_count;
  constants.profiles = options.profile_count != 0 ? measured->profiles : nullptr;
  constants.profile_layers = options.profile_count != 0 ? options.profiles[0].share_count : 0;
  for (uint32_t i = 0; i < options.profile_count; ++i) {
    const oriel_window_profile& from = options.profiles[i];
    WindowProfile& to = measured->profiles[i];
    to = {from.loss_nats, from.window_tokens, {}};
    std::copy_n(from.shares, from.share_count, to.parts);
  }
}

void useCalibration(const Calibration& measured, const ModelDesc& model, LossModel* loss) {
  const double key_scale = LossModel::keyPriorScale(model);
  loss->keys_int8 *= key_scale;
  loss->keys_int4 *= key_scale;
  const struct {
    double measured;
    double* constant;
  } constants[] = {
      {measured.forget_scale, &loss->forget_scale}, {measured.forget_power, &loss->forget_power},
      {measured.keys_int8, &loss->keys_int8},       {measured.keys_int4, &loss->keys_int4},
      {measured.values_int8, &loss->values_int8},   {measured.values_int4, &loss->values_int4},
      {measured.kl_limit, &loss->kl_limit},         {measured.state_f16, &loss->state_f16},
      {measured.state_int8, &loss->state_int8}};
  for (const auto& entry : constants) {
    if (entry.measured != 0) {
      *entry.constant = entry.measured;
    }
  }
  loss->layers = measured.layers;
  loss->profiles = {measured.profiles, measured.profile_count, measured.profile_layers};
}

}  // namespace oriel_internal
