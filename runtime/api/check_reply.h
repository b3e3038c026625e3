// Checks that a reply can be constrained as requested, before a session exists.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// oriel_render with ORIEL_RENDER_CHECK.
oriel_status renderCheck(const oriel_model& model, const ChatChoice& chat, const char* json,
                         size_t bytes, char* text, size_t capacity, size_t* needed);

}  // namespace oriel_internal
