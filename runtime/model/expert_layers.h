// Reads the sizes of a mixture of experts, and which layers have experts.
#pragma once

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
