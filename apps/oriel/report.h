// Fields that several commands report.
#pragma once

#include <oriel/tools.h>

#include "output.h"

namespace cli {

/// The object `predicted`: what is known before anything has been measured; null is "not known". Decoding
/// at this depth, and a prompt of so many tokens (0: one chunk) behind `prompt_depth`.
struct PredictedAt {
  double decode_depth = 0;
  uint64_t prompt_depth = 0;
  uint32_t prompt_tokens = 0;
};
Json predictedFields(const Json& plan, const PredictedAt& at);
/// False for a plan without predictions.
bool predict(const Json& plan, uint64_t depth, uint32_t prompt_tokens,
             oriel_prediction* prediction);
/// Tokens that the window and the sinks have beyond what the model was trained on.
uint32_t beyondTrained(const Json& plan);
/// "weights", "cache", "overhead".
const char* limitName(oriel_speed_limit limit);
/// "length", "stop", "stop_text", "callback", "cancelled".
const char* stopReasonName(oriel_stop_reason reason);

}  // namespace cli
