// Names the missing parts for a model, so that a refusal says more than "unknown".
#pragma once

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Reports that an architecture does not run, its known requirements, and the supported ones.
Status refuseArchitecture(const GgufString& name, const Log& log);

/// The purpose of a tensor without a rule, to follow its name: "is a bias".
const char* unknownTensorPurpose(const GgufString& name);

/// Refuses keys of a known architecture that would change its arithmetic.
Status refuseVariants(const GgufFile& file, const Architecture& architecture, const Log& log);

}  // namespace oriel_internal
