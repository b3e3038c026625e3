// Converts a request's sampling fields to library options.
#pragma once

#include "serve/message.h"
#include "settings.h"

namespace cli {

/// `base` gives the defaults. `max_tokens` is per reply; `choice`: index of the reply to one prompt.
Settings samplingOf(const ReplyRequest& request, const Settings& base, uint32_t max_tokens,
                    uint32_t choice);

}  // namespace cli
