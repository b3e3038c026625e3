// Names what a model would need that is not here, so that a refusal says more than "unknown".
#pragma once

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Says that an architecture does not run, what it needs where that is known, and which ones run.
Status refuseArchitecture(const GgufString& name, const Log& log);

/// What a tensor that no rule knows would do, to follow its name: "is a bias".
const char* unknownTensorPurpose(const GgufString& name);

/// Refuses keys of a known architecture that would change its arithmetic.
Status refuseVariants(const GgufFile& file, const Architecture& architecture, const Log& log);

}  // namespace oriel_internal
