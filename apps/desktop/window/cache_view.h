// The memory of the chat in front, drawn as it is: sinks, evicted tokens, turns in the window, free slots.
#pragma once

#include "cache_stretches.h"
#include "context.h"

namespace desktop {

void drawCache(const Context& context, const ChatState* chat);

}  // namespace desktop
