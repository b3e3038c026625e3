// Options for several sessions and their shared prefix.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// Reads the sessions, their windows and the memory for a prefix of `prefix_tokens`. The request points into `prepared`.
Status readSessions(const LoadOptions& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request);

// Length of the prefix: of the system prompt, of the prefix file, or LoadOptions.prefix_tokens. `file`: the model's.
Status countPrefix(const GgufFile& file, const LoadOptions& options, const StopCheck& stop,
                   const Log& log, uint32_t* tokens, TemplateOnce* learned);

// Makes that prefix after the load.
Status makePrefixOf(const LoadOptions& options, LoadProgress* progress, oriel_model* model);

// Tokens of a saved conversation; 0 if it is not readable.
struct SnapshotSize {
  uint64_t position = 0;
  uint64_t tokens_held = 0;
};
Status measureSnapshotFile(const char* path, const Log& log, SnapshotSize* size);

}  // namespace oriel_internal
