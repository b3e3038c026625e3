// Reads the options of replies.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// Reads front fields and settings. Null gives all defaults. Logs a line for ORIEL_ERROR_ARGUMENT. The caller keeps
// owning the texts.
Status takeReplyOptions(const oriel_reply_options* given, const Log& log, ReplyChoices* options);

// Checks every value and applies the defaults. Logs one line. Returns ORIEL_ERROR_ARGUMENT for a value out of range and
// ORIEL_ERROR_TEXT for a stop text that is not UTF-8. `settings` points into `options`.
Status readGenerateOptions(const oriel_model& model, const ReplyChoices& options, const Log& log,
                           GenerateSettings* settings);

}  // namespace oriel_internal
