// Reads which layers keep a state, and the shape of the states.
#pragma once

#include "model/architecture.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
