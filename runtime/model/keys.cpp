#include "model/keys.h"

#include <cinttypes>
#include <cmath>

namespace oriel_internal {

Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value) {
  if (file.getUint(key, value)) {
    return kOk;
  }
  GgufArray array;
  (void)file.getArray(key, &array);  // stays empty if it is not an array
  GgufArrayReader reader(array);
  int64_t first = 0;
  if (reader.nextInt(&first) && first >= 0) {
    for (int64_t other = 0; reader.nextInt(&other);) {
      if (other != first) {
        return log.fail(ORIEL_ERROR_UNSUPPORTED,
                        "%s differs between layers (%" PRId64 " and %" PRId64
                        "), which this build cannot run: use another model",
                        key, first, other);
      }
    }
    *value = static_cast<uint64_t>(first);
    return kOk;
  }
  return log.fail(ORIEL_ERROR_FORMAT,
                  "%s is not a whole number in the GGUF file: convert the model again", key);
}

Status checkRange(const char* key, uint64_t value, uint32_t minimum, uint32_t maximum,
                  const Log& log) {
  if (value < minimum || value > maximum) {
    return log.fail(value == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                    "%s is %" PRIu64 ", this build runs %" PRIu32 " to %" PRIu32
                    ": use another model",
                    key, value, minimum, maximum);
  }
  return kOk;
}

Status missingKey(const char* key, const Log& log) {
  return log.fail(ORIEL_ERROR_FORMAT, "%s is missing from the GGUF file: convert the model again",
                  key);
}

Status checkPerLayer(const char* key, const GgufArray& list, uint32_t n_layers, const Log& log) {
  if (list.count != n_layers) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s has %" PRIu64 " entries for %" PRIu32 " layers: convert the model again",
                    key, list.count, n_layers);
  }
  return kOk;
}

Status LayerCounts::open(const GgufFile& file, const Architecture& architecture, const char* suffix,
                         uint32_t n_layers, uint32_t minimum, uint32_t maximum, const Log& log) {
  key_ = KeyName(architecture, suffix);
  minimum_ = minimum;
  maximum_ = maximum;
  present_ = file.has(key_.text);
  GgufArray array;
  is_array_ = file.getArray(key_.text, &array);
  if (!present_) {
    return kOk;
  }
  if (!is_array_) {
    ORIEL_TRY(readCount(file, key_.text, log, &value_));
    return checkRange(key_.text, value_, minimum_, maximum_, log);
  }
  ORIEL_TRY(checkPerLayer(key_.text, array, n_layers, log));
  reader_ = GgufArrayReader(array);
  return kOk;
}

Status LayerCounts::next(const Log& log, uint32_t* value) {
  if (is_array_) {
    int64_t number = 0;
    if (!reader_.nextInt(&number) || number < 0) {
      return log.fail(ORIEL_ERROR_FORMAT,
                      "%s is not a list of whole numbers in the GGUF file: convert the model again",
                      key_.text);
    }
    value_ = static_cast<uint64_t>(number);
    ORIEL_TRY(checkRange(key_.text, value_, minimum_, maximum_, log));
  }
  *value = static_cast<uint32_t>(value_);
  return kOk;
}

Status readCounts(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc) {
  uint32_t n_counts = 0;
  const CountKey* const counts = countKeys(&n_counts);
  for (uint32_t i = 0; i < n_counts; ++i) {
    const CountKey& count = counts[i];
    const KeyName key(architecture, count.suffix);
    if (!file.has(key.text)) {
      if (count.required) {
        return missingKey(key.text, log);
      }
      continue;
    }
    uint64_t value = 0;
    ORIEL_TRY(readCount(file, key.text, log, &value));
    ORIEL_TRY(checkRange(key.text, value, count.minimum, count.maximum, log));
    desc->*count.field = static_cast<uint32_t>(value);
  }
  return kOk;
}

Status readModelCount(const GgufFile& file, const Architecture& architecture, const char* suffix,
                      Need need, uint32_t minimum, uint32_t maximum, const Log& log,
                      uint32_t* count) {
  const KeyName key(architecture, suffix);
  if (!file.has(key.text)) {
    return need == Need::kRequired ? missingKey(key.text, log) : kOk;
  }
  uint64_t value = 0;
  ORIEL_TRY(readCount(file, key.text, log, &value));
  ORIEL_TRY(checkRange(key.text, value, minimum, maximum, log));
  *count = static_cast<uint32_t>(value);
  return kOk;
}

Status readReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                Need need, const Log& log, double* value) {
  const KeyName key(architecture, suffix);
  if (need == Need::kOptional && !file.has(key.text)) {
    return kOk;
  }
  if (!file.getFloat(key.text, value) || !std::isfinite(*value) || *value <= 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is %s in the GGUF file: convert the model again",
                    key.text, file.has(key.text) ? "not a positive number" : "missing");
  }
  return kOk;
}

Status readScale(const GgufFile& file, const Architecture& architecture, const char* suffix,
                 Need need, const Log& log, double* value) {
  double given = 1;
  if (file.getFloat(KeyName(architecture, suffix).text, &given) && given == 0 &&
      need == Need::kOptional) {
    return kOk;
  }
  return readReal(file, architecture, suffix, need, log, value);
}

Status readCountAsReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                       const Log& log, double* value) {
  const KeyName key(architecture, suffix);
  if (!file.has(key.text)) {
    return kOk;
  }
  uint64_t count = 0;
  ORIEL_TRY(readCount(file, key.text, log, &count));
  if (count == 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is 0 in the GGUF file: convert the model again",
                    key.text);
  }
  *value = static_cast<double>(count);
  return kOk;
}

}  // namespace oriel_internal
