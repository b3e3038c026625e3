// Names what a model would need that is not here, so that a refusal says more than "unknown".
#pragma once

#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel {

/// "mixture of experts" and the like for architectures that are known not to run; null for others.
const char* missingFor(const GgufString& architecture);

/// What a tensor that no rule knows would do, to follow its name: "is a bias".
const char* unknownTensorPurpose(const GgufString& name);

/// Refuses keys of a known architecture that would change its arithmetic.
Status refuseVariants(const GgufFile& file, const ArchitectureTable& table, const Log& log);

}  // namespace oriel
