// Draws the cache of the front chat: sinks, evicted tokens, turns in the window, free slots.
#pragma once

#include "cache_stretches.h"
#include "context.h"

namespace desktop {

void drawCache(const Context& context, const ChatState* chat);

}  // namespace desktop
