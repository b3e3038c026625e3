// What rates of the device say about a model that is loaded, and how much it moves.
#pragma once

#include <oriel/tools.h>

#include "model_handle.h"

namespace cli {

/// The plan that the options' model was loaded with, as predicted with `speed`.
Json predictedPlan(const Json& loaded, const CommonOptions& options, const oriel_speed& speed);

/// Least bytes that memory has to move: weights are read once a step, the keys and values that are seen once a
/// step, those of its tokens written. At `depth` tokens, of which the window shows what it holds.
double decodeBytes(const Json& plan, double depth);
/// Of a prompt of so many tokens in as many chunks as it takes, logits of the last included.
double prefillBytes(const Json& plan, double depth, uint32_t prompt_tokens);

}  // namespace cli
