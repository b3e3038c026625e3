// Fields that several commands report.
#pragma once

#include <oriel/tools.h>

#include "output.h"

namespace cli {

/// "f16", as --kv spells it.
const char* kvFormatName(oriel_kv_format format);
const char* stateFormatName(oriel_state_format format);
/// The field `state_format`: null where no layer has a state.
Json stateFormatField(const oriel_plan& plan);
/// Bytes by purpose and the choices of a plan.
/// Null where nobody can say: of a shape whose weights are not described.
Json fitsField(const oriel_plan& plan, bool fits);
Json planFields(const oriel_plan& plan);
/// The object `predicted`: what is known before anything has been measured; null is "not known". Decoding
/// at this depth, and a prompt of so many tokens (0: one chunk) behind `prompt_depth`.
struct PredictedAt {
  double decode_depth = 0;
  uint64_t prompt_depth = 0;
  uint32_t prompt_tokens = 0;
};
Json predictedFields(const oriel_plan& plan, const PredictedAt& at);
/// False for a plan without predictions.
bool predict(const oriel_plan& plan, uint64_t depth, uint32_t prompt_tokens,
             oriel_prediction* prediction);
/// Tokens that the window and the sinks have beyond what the model was trained on.
uint32_t beyondTrained(const oriel_plan& plan);
/// "weights", "cache", "overhead".
const char* limitName(oriel_speed_limit limit);
/// "length", "stop", "stop_text", "callback", "cancelled".
const char* stopReasonName(oriel_stop_reason reason);

}  // namespace cli
