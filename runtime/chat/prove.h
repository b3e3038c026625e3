// Whether a chat format writes what a model's own template writes.
#pragma once

#include "base/log.h"
#include "base/stop_check.h"
#include "base/workspace.h"
#include "jinja/jinja.h"
#include "text/chat.h"

namespace oriel_internal {

/// Renders conversations of every simple shape (with and without a system message, with white space around texts, with
/// answers that hold a thought, with thinking on, off and not mentioned, with and without an opened reply) both ways and
/// sets chat->runs where one differs, or no format is known. Conversations that the template refuses, or
/// whose system message it leaves out, do not count: there a format is more patient. Borrows memory as a template does. Does nothing for formats that come without a template.
/// A template that takes too many steps is not tried further: a warning says so, and a conversation that needs it fails.
/// ORIEL_ERROR_OUT_OF_MEMORY where the system refuses it.
/// ORIEL_ERROR_CANCELLED when `stop`, which is asked at every conversation and while one is rendered, says so.
Status settleChat(const oriel_allocator& allocator, const StopCheck& stop, const Log& log,
                  ChatTemplate* chat);

}  // namespace oriel_internal
