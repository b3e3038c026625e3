// Memory of the published models, always computed.
#pragma once

#include <vector>

#include "models/catalogue.h"
#include "output.h"

namespace cli {

/// A published model with values computed from its shape.
struct ListedModel {
  const PublishedModel* published;
  Json shape;
  uint64_t on_file_bytes = 0;  ///< the part of file_bytes that stays in the file
  /// For 4096 tokens of window and sinks; 0: file_bytes is unknown.
  uint64_t memory_bytes_4096 = 0;
  uint64_t memory_bytes_32768 = 0;
};

/// Sorted by memory; unknown ones last.
std::vector<ListedModel> publishedModels();

}  // namespace cli
