// How replies are asked for.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// Fields and settings. ORIEL_ERROR_ARGUMENT with a line.
Status takeGenerateOptions(const ReplyChoices* given, const Log& log,
                           ReplyChoices* options);

/// Checks every value and applies the defaults. Null: all defaults. One line and ORIEL_ERROR_ARGUMENT for what is out of
/// range, ORIEL_ERROR_TEXT for a stop text that is not UTF-8. Texts and biases stay the caller's.
Status readGenerateOptions(const oriel_model& model, const ReplyChoices* given,
                           const Log& log, GenerateSettings* settings);

}  // namespace oriel_internal
