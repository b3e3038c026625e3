// Predictions for a loaded model from device rates, and the bytes it moves.
#pragma once

#include <oriel/tools.h>

#include "model_handle.h"

namespace cli {

/// The plan of the loaded model with predictions for `speed`.
Json predictedPlan(const Json& loaded, const CommonOptions& options, const oriel_speed& speed);

/// Smallest number of bytes to move per step: reads the weights once, reads the visible keys and values once, and writes
/// the keys and values of the new tokens. At `depth` tokens, limited by the window.
double decodeBytes(const Json& plan, double depth);
/// For a prompt of that many tokens in chunks, including the last token's logits.
double prefillBytes(const Json& plan, double depth, uint32_t prompt_tokens);

}  // namespace cli
