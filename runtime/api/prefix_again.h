// A prefix whose device was lost.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// Reads the prefix of a model, whose executor is new, into its sinks again: from the file that it came from, or from its
/// tokens by way of `handle`'s session, whose memory is zeros then. For calls that have the model to themselves.
Status makePrefixAgain(oriel_model* model, oriel_session* handle);

}  // namespace oriel_internal
