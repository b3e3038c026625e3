// Latent attention: reads the widths of a layer's vectors.
#pragma once

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Fills in head_dim and the latent fields, in `kind` and in the description's largest numbers. Counts of heads and
/// layers must be set. `layer` must have attention. The main RoPE table rotates the shared key.
Status readLatent(const GgufFile& file, const Architecture& architecture, uint32_t layer,
                  const Log& log, LayerKind* kind, ModelDesc* desc);

}  // namespace oriel_internal
