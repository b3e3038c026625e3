// Options for several sessions and their shared prefix.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// Reads the sessions, their windows and the memory for a prefix of `prefix_tokens`. The request points into `prepared`.
Status readSessions(const LoadOptions& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request);

// Length of the prefix: of the system prompt, of the prefix file, or LoadOptions.prefix_tokens. Reads the texts of the
// model and may fill prepared->learned.
Status countPrefix(const LoadOptions& options, const StopCheck& stop, const Log& log,
                   PreparedModel* prepared, uint32_t* tokens);

// Makes that prefix after the load.
Status makePrefixOf(const LoadOptions& options, LoadProgress* progress, oriel_model* model);

// Tokens of a saved conversation; 0 if it is not readable.
struct SnapshotSize {
  uint64_t position = 0;
  uint64_t tokens_held = 0;
};
Status measureSnapshotFile(const char* path, const Log& log, SnapshotSize* size);

}  // namespace oriel_internal
