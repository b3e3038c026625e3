// JSON fields shared by several commands.
#pragma once

#include <oriel/tools.h>

#include "output.h"

namespace cli {

/// The object `predicted`: known before any measurement; null is "unknown". For decoding at `depth`, and a prompt of
/// that many tokens (0: one chunk) after `prompt_depth`.
struct PredictedAt {
  double decode_depth = 0;
  uint64_t prompt_depth = 0;
  uint32_t prompt_tokens = 0;
};
Json predictedFields(const Json& plan, const PredictedAt& at);
/// False for a plan without predictions.
bool predict(const Json& plan, uint64_t depth, uint32_t prompt_tokens,
             oriel_prediction* prediction);
/// Tokens by which window and sinks exceed the trained context.
uint32_t beyondTrained(const Json& plan);
/// "weights", "cache", "overhead".
const char* limitName(oriel_speed_limit limit);
/// "length", "stop", "stop_text", "callback", "cancelled".
const char* stopReasonName(oriel_stop_reason reason);

}  // namespace cli
