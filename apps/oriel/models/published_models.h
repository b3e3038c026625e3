// What memory the published models take: always computed.
#pragma once

#include <vector>

#include "models/catalogue.h"
#include "output.h"

namespace cli {

/// A published model with what follows from its shape.
struct ListedModel {
  const PublishedModel* published;
  Json shape;
  uint64_t on_file_bytes = 0;  ///< of file_bytes, stay in the file
  /// For a window and sinks of so many tokens together; 0: file_bytes are not known.
  uint64_t memory_bytes_4096 = 0;
  uint64_t memory_bytes_32768 = 0;
};

/// Those that take least memory first, those of which it is not known last.
std::vector<ListedModel> publishedModels();

}  // namespace cli
