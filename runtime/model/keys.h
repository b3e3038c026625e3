// Numbers in a model's metadata, "<architecture>.<suffix>".
#pragma once

#include <cstdint>
#include <cstdio>

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel {

/// "llama.block_count": the longest architecture and suffix of the tables fit with room to spare.
struct KeyName {
  KeyName(const ArchitectureTable& table, const char* suffix) {
    std::snprintf(text, sizeof(text), "%s.%s", table.name, suffix);
  }
  char text[96];
};

/// A whole number, or an array of one number per layer as long as they are all the same.
Status readCount(const GgufFile& file, const char* key, const Log& log, uint64_t* value);

/// All counts of the table.
Status readCounts(const GgufFile& file, const ArchitectureTable& table, const Log& log,
                  ModelDesc* desc);

enum class Need : uint8_t { kOptional, kRequired };

/// A positive, finite number; `*value` stays as it is when the key is missing and not required.
Status readReal(const GgufFile& file, const ArchitectureTable& table, const char* suffix, Need need,
                const Log& log, double* value);

/// A positive whole number; `*value` stays as it is when the key is missing.
Status readCountAsReal(const GgufFile& file, const ArchitectureTable& table, const char* suffix,
                       const Log& log, double* value);

}  // namespace oriel
