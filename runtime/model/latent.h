// Latent attention: the widths of a layer's vectors, as files name them.
#pragma once

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// Fills in head_dim and what of LayerKind belongs to latents, in `kind` and the description's largest numbers; counts
/// heads and layers are there. Main RoPE turns the rotated key.
Status readLatent(const GgufFile& file, const Architecture& architecture, const Log& log,
                  LayerKind* kind, ModelDesc* desc);

}  // namespace oriel_internal
