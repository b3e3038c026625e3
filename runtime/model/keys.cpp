#include "model/keys.h"

#include <cinttypes>
#include <cmath>

namespace oriel {

Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value) {
  if (file.getUint(key, value)) {
    return kOk;
  }
  GgufArray array;
  (void)file.getArray(key, &array);  // stays empty when it is no array
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

Status readCounts(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                  ModelDesc* desc) {
  for (uint32_t i = 0; i < table.n_counts; ++i) {
    const CountKey& count = table.counts[i];
    const KeyName key(table, count.suffix);
    if (!file.has(key.text)) {
      if (count.required) {
        return log.fail(ORIEL_ERROR_FORMAT,
                        "%s is missing from the GGUF file: convert the model again", key.text);
      }
      continue;
    }
    uint64_t value = 0;
    ORIEL_TRY(readCount(file, key.text, log, &value));
    if (value < count.minimum || value > count.maximum) {
      return log.fail(value == 0 ? ORIEL_ERROR_FORMAT : ORIEL_ERROR_UNSUPPORTED,
                      "%s is %" PRIu64 ", this build runs %" PRIu32 " to %" PRIu32
                      ": use another model",
                      key.text, value, count.minimum, count.maximum);
    }
    desc->*count.field = static_cast<uint32_t>(value);
  }
  return kOk;
}

Status readReal(const GgufFile& file, const ArchitectureTable& table, const char* suffix, Need need,
                const Log& log, double* value) {
  const KeyName key(table, suffix);
  if (need == Need::kOptional && !file.has(key.text)) {
    return kOk;
  }
  if (!file.getFloat(key.text, value) || !std::isfinite(*value) || *value <= 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "%s is %s in the GGUF file: convert the model again",
                    key.text, file.has(key.text) ? "not a positive number" : "missing");
  }
  return kOk;
}

Status readCountAsReal(const GgufFile& file, const ArchitectureTable& table, const char* suffix,
                       const Log& log, double* value) {
  const KeyName key(table, suffix);
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

}  // namespace oriel
