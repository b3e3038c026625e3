// How replies are asked for.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// Front fields and settings. Null: all defaults. ORIEL_ERROR_ARGUMENT with a line. Texts stay the caller's.
Status takeReplyOptions(const oriel_reply_options* given, const Log& log, ReplyChoices* options);

/// Checks every value and applies the defaults. One line and ORIEL_ERROR_ARGUMENT for what is out of
/// range, ORIEL_ERROR_TEXT for a stop text that is not UTF-8. `settings` points into `options`.
Status readGenerateOptions(const oriel_model& model, const ReplyChoices& options, const Log& log,
                           GenerateSettings* settings);

}  // namespace oriel_internal
