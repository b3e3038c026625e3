// Whether a reply can be held to what is asked of it, before there is a session to ask.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// oriel_render with ORIEL_RENDER_CHECK.
oriel_status renderCheck(const oriel_model& model, const ChatChoice& chat, const char* json,
                         size_t bytes, char* text, size_t capacity, size_t* needed);

}  // namespace oriel_internal
