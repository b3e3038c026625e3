// Groups a conversation's tokens into stretches for drawing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state.h"

namespace desktop {

/// Consecutive tokens that are drawn in one style.
struct CacheStretch {
  enum Kind { kSinks, kEvicted, kTurn } kind;
  uint64_t begin, end;
  size_t turn;  ///< number of the turn, for kTurn
};
std::vector<CacheStretch> stretchesOf(const CacheState& cache);

}  // namespace desktop
