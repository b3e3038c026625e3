// Reads the layers of a model file: kinds, experts, states, and latent attention.
#pragma once

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

// Latent attention: reads the widths of a layer's vectors.

/// Fills in head_dim and the latent fields, in `kind` and in the description's largest numbers. Counts of heads and
/// layers must be set. `layer` must have attention. The main RoPE table rotates the shared key.
Status readLatent(const GgufFile& file, const Architecture& architecture, uint32_t layer,
                  const Log& log, LayerKind* kind, ModelDesc* desc);

// Reads the sizes of a mixture of experts, and which layers have experts.

/// Properties that all expert layers share.
struct ExpertCounts {
  Experts experts;
  uint32_t dense_layers = 0;  ///< number of first layers without experts
  uint32_t shared_count = 0;  ///< experts that every token uses
  uint32_t shared_ff = 0;     ///< n_ff of the dense feed-forward
  uint32_t period = 0;        ///< not 0: only the second layer of each period has experts
  uint32_t interval = 1;      ///< among the others, the last of each interval has experts
  bool by_tensor = false;     ///< among those, only layers with a router
  Experts value_experts;      ///< make values, in the same layers

  /// True if the layer has experts.
  bool isIn(const GgufFile& file, uint32_t layer) const;
};

/// Leaves the output empty if the model has no experts. `n_ff`: the width that files state for all layers.
Status readExperts(const GgufFile& file, const Architecture& architecture, uint32_t n_layers,
                   uint32_t n_ff, const Log& log, ExpertCounts* found);

// Reads which layers keep a state, and the shape of the states.

/// Reads the shape of all states; empty if the architecture has none. Leaves `normed` unset. `n_heads`: heads of
/// layers with states whose keys do not state them.
Status readState(const GgufFile& file, const Architecture& architecture, uint32_t n_heads,
                 const Log& log, StateShape* state);

/// The key, without the architecture's name, that marks the attention layers.
const char* mixerKey(const GgufFile& file, const Architecture& architecture);

/// Mixers of the layers, read in the order of the layers.
class MixerPattern {
 public:
  /// `n_blocks`: layers in the file, including skipped ones.
  Status open(const GgufFile& file, const Architecture& architecture, uint32_t n_blocks,
              const Log& log);
  /// Mixer of the next layer, given its KV heads and the width of its feed-forward.
  Status next(uint32_t layer, uint32_t n_kv_heads, uint32_t n_ff, const Log& log, Mixer* mixer);

 private:
  StateLayers states_ = StateLayers::kNone;
  const char* of_ = "";  ///< the architecture's name
  uint32_t interval_ = 0;
  bool is_list_ = false;
  GgufArrayReader flags_{GgufArray()};
};

// Reads a file's counts, windows and scales into kinds of layers.

/// Fills in the layer fields of `desc`. The model-wide counts must be set.
Status readLayers(const GgufFile& file, const Architecture& architecture, const Log& log,
                  ModelDesc* desc);

}  // namespace oriel_internal
