// How a request's replies are sampled, as options of the library.
#pragma once

#include "serve/reply_request.h"
#include "settings.h"

namespace cli {

/// `base` counts where the request does not say. `max_tokens` of each reply; `choice`: which of the replies to one prompt.
Settings samplingOf(const ReplyRequest& request, const Settings& base, uint32_t max_tokens,
                    uint32_t choice);

}  // namespace cli
