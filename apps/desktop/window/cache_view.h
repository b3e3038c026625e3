// The memory of the chat in front, drawn as it is: sinks, evicted tokens, turns in the window, free slots.
#pragma once

#include "context.h"

namespace desktop {

void drawCache(const Context& context, const ChatState* chat);

/// A stretch of tokens that is drawn in one way.
struct CacheStretch {
  enum Kind { kSinks, kEvicted, kTurn } kind;
  uint64_t begin, end;
  size_t turn;  ///< its number, of kTurn
};
std::vector<CacheStretch> stretchesOf(const CacheState& cache);

}  // namespace desktop
