// Restores a prefix after its device was lost.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// Reads the prefix into the sinks of the model's new executor: from its file, or from its tokens through the session of
// `handle`, whose memory is zero. Needs exclusive use of the model.
Status makePrefixAgain(oriel_model* model, oriel_session* handle);

}  // namespace oriel_internal
