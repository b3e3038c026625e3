#include "api/calibration.h"

#include <cmath>
#include <cstdio>

namespace oriel {
namespace {

constexpr size_t kMaxPath = 4096;

struct TextFile {
  InputFile file;
  uint64_t at = 0;
};

size_t readPiece(void* context, void* buffer, size_t capacity) {
  TextFile* const text = static_cast<TextFile*>(context);
  const size_t bytes =
      static_cast<size_t>(std::min<uint64_t>(capacity, text->file.bytes() - text->at));
  if (!text->file.read(text->at, buffer, bytes, Log()).ok()) {
    return 0;
  }
  text->at += bytes;
  return bytes;
}

Status hashEnds(const ModelFile& model, const Log& log, uint64_t* hash) {
  uint8_t piece[4096];
  *hash = kEndsHashBegin;
  const uint64_t part = std::min(model.bytes(), kEndsHashedBytes);
  for (const uint64_t begin : {uint64_t{0}, model.bytes() - part}) {
    for (uint64_t done = 0; done < part;) {
      const uint64_t bytes = std::min<uint64_t>(sizeof(piece), part - done);
      ORIEL_TRY(model.read(begin + done, piece, bytes, log));
      *hash = hashOfEnds(piece, static_cast<size_t>(bytes), *hash);
      done += bytes;
    }
  }
  return kOk;
}

// `*fault`: null where nothing is wrong with it.
Status checkCalibration(TextFile* text, const ModelFile& model, uint32_t n_layers, const Log& log,
                        CalibrationFile* file, const char** fault) {
  uint64_t hash = 0;
  ORIEL_TRY(hashEnds(model, log, &hash));
  switch (readCalibrationFile({readPiece, text}, file)) {
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
  const uint32_t layers = file->constants.layer_count;
  *fault = file->model_bytes != model.bytes() || file->model_hash != hash
               ? "was measured on another file"
           : layers != 0 && layers != n_layers ? "has another number of layers than the model"
                                               : nullptr;
  return kOk;
}

}  // namespace

Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers, const Log& log,
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
  TextFile text;
  const bool readable = text.file.openIfThere(path, Log()).ok();
  const bool open = text.file.isOpen();
  if (!open && !beside) {
    return log.fail(ORIEL_ERROR_IO, "the calibration %.600s cannot be read: check the path and its access rights",
                    path);
  }
  const char* fault = readable ? nullptr : "cannot be read";
  if (open) {
    ORIEL_TRY(checkCalibration(&text, model, n_layers, log, storage, &fault));
  }
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
