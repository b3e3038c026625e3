// Numbers in a model's metadata, "<architecture>.<suffix>".
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// "llama.block_count". Longer than the longest architecture and suffix in the tables.
struct KeyName {
  KeyName() : text{} {}
  KeyName(const Architecture& architecture, const char* suffix) {
    std::snprintf(text, sizeof(text), "%s.%s", architecture.name, suffix);
  }
  char text[96];
};

/// The error for a missing required key.
Status missingKey(const char* key, const Log& log);

/// Fails for a count outside `minimum` to `maximum`, the limits of this build.
Status checkRange(const char* key, uint64_t value, uint32_t minimum, uint32_t maximum,
                  const Log& log);

/// Fails if a list does not have one entry per layer.
Status checkPerLayer(const char* key, const GgufArray& list, uint32_t n_layers, const Log& log);

/// Reads a whole number, or an array that repeats one number for every layer.
Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value);

/// A whole number per layer: a scalar for all layers, or an array.
class LayerCounts {
 public:
  /// `minimum` to `maximum`: limits of this build.
  Status open(const GgufFile& file, const Architecture& architecture, const char* suffix,
              uint32_t n_layers, uint32_t minimum, uint32_t maximum, const Log& log);
  bool present() const { return present_; }
  /// Reads the next layer's value. Call at most n_layers times, and only if present().
  Status next(const Log& log, uint32_t* value);

 private:
  KeyName key_;
  bool present_ = false;
  bool is_array_ = false;
  uint64_t value_ = 0;
  GgufArrayReader reader_{GgufArray()};
  uint32_t minimum_ = 0;
  uint32_t maximum_ = 0;
};

/// Reads all model-wide counts.
Status readCounts(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc);

enum class Need : uint8_t { kOptional, kRequired };

/// Reads a model-wide count. Leaves `*count` unchanged if an optional key is missing.
Status readModelCount(const GgufFile& file, const Architecture& architecture, const char* suffix,
                      Need need, uint32_t minimum, uint32_t maximum, const Log& log,
                      uint32_t* count);

/// Reads a positive, finite number. Leaves `*value` unchanged if an optional key is missing.
Status readReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                Need need, const Log& log, double* value);

/// Like readReal, but 0 means "not scaled", as some converters write.
Status readScale(const GgufFile& file, const Architecture& architecture, const char* suffix,
                 Need need, const Log& log, double* value);

/// Reads a positive whole number. Leaves `*value` unchanged if the key is missing.
Status readCountAsReal(const GgufFile& file, const Architecture& architecture, const char* suffix,
                       const Log& log, double* value);

// Scaled RoPE of a file, reduced to tables of divisors.

/// Fills in bases, scaling and factors of rotations, but not the layers without RoPE. Needs the counts and
/// checked tensors. ORIEL_ERROR_FORMAT if numbers or factors are missing, not positive or not finite;
/// ORIEL_ERROR_UNSUPPORTED for unknown kinds of scaling.
Status readRope(const GgufFile& file, const Architecture& architecture, const TensorIndex& tensors,
                const Log& log, ModelDesc* desc);

}  // namespace oriel_internal
