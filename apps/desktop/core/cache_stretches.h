// A conversation's tokens as stretches that are drawn alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "state.h"

namespace desktop {

/// A stretch of tokens that is drawn in one way.
struct CacheStretch {
  enum Kind { kSinks, kEvicted, kTurn } kind;
  uint64_t begin, end;
  size_t turn;  ///< its number, of kTurn
};
std::vector<CacheStretch> stretchesOf(const CacheState& cache);

}  // namespace desktop
