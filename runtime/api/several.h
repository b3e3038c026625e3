// What options ask for several sessions, and for the prefix that they share.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// Sessions, their windows and the room for a prefix of `prefix_tokens`. The request points into `prepared`.
Status readSessions(const oriel_options& options, uint32_t prefix_tokens, const Log& log,
                    PreparedModel* prepared, BudgetRequest* request);

/// Tokens of the prefix that the options give by themselves, as a text or a file; else oriel_options.prefix_tokens.
Status countPrefix(const char* path, const oriel_options& options, const Log& log,
                   uint32_t* tokens);

/// Makes that prefix, once the model is loaded.
Status makePrefixOf(const oriel_options& options, LoadProgress* progress, oriel_model* model);

}  // namespace oriel_internal
