// What a mixture's experts are like, and which layers have some: reads a file's numbers.
#pragma once

#include "base/log.h"
#include "gguf/gguf.h"
#include "model/architecture.h"

namespace oriel_internal {

/// What the layers with experts have in common.
struct ExpertCounts {
  Experts experts;
  uint32_t dense_layers = 0;  ///< the first so many have none
  uint32_t shared_count = 0;  ///< experts that every token uses
  uint32_t shared_ff = 0;     ///< of the feed-forward beside them
  uint32_t period = 0;        ///< not 0: of so many layers the second alone has some
  uint32_t interval = 1;      ///< and of the others the last of every so many have some
  bool by_tensor = false;     ///< of those, the ones that have a router
  Experts value_experts;      ///< that make values, in the same layers

  /// Whether a layer has experts.
  bool isIn(const GgufFile& file, uint32_t layer) const;
};

/// Nothing where the model has no experts. `n_ff`: the width that files state for all layers.
Status readExperts(const GgufFile& file, const Architecture& architecture, uint32_t n_layers,
                   uint32_t n_ff, const Log& log, ExpertCounts* found);

}  // namespace oriel_internal
