#include "report.h"

#include "model_handle.h"

namespace cli {

uint32_t beyondTrained(const Json& plan) {
  const uint64_t seen = numberIn(plan, "sink_tokens") + numberIn(plan, "window_tokens");
  const uint64_t trained = numberIn(plan, "context_train_tokens");
  return trained != 0 && seen > trained ? static_cast<uint32_t>(seen - trained) : 0;
}

bool predict(const Json& plan, uint64_t depth, uint32_t prompt_tokens,
             oriel_prediction* prediction) {
  *prediction = ORIEL_INIT(oriel_prediction);
  const std::string text = plan.dump();
  return oriel_plan_predict(text.data(), text.size(), depth, prompt_tokens, prediction) == ORIEL_OK;
}

const char* limitName(oriel_speed_limit limit) {
  switch (limit) {
    case ORIEL_LIMIT_WEIGHTS:
      return "weights";
    case ORIEL_LIMIT_CACHE:
      return "cache";
    case ORIEL_LIMIT_OVERHEAD:
      return "overhead";
  }
  return "unknown";
}

Json predictedFields(const Json& plan, const PredictedAt& at) {
  Json json;
  oriel_prediction decode;
  oriel_prediction prompt;
  const bool known = predict(plan, static_cast<uint64_t>(at.decode_depth), 0, &decode) &&
                     predict(plan, at.prompt_depth, at.prompt_tokens, &prompt);
  json["decode_tokens_per_s"] = known ? Json(decode.decode_tokens_per_s) : Json(nullptr);
  json["prefill_tokens_per_s"] = known ? Json(prompt.prefill_tokens_per_s) : Json(nullptr);
  json["decode_limit"] = known ? Json(limitName(decode.decode_limit)) : Json(nullptr);
  json["time_crossover_tokens"] =
      known && decode.crossover_tokens > 0 ? Json(decode.crossover_tokens) : Json(nullptr);
  json["crossover_tokens"] = plan["crossover_tokens"];
  json["expert_hit_rate"] = numberIn(plan, "expert_count") != 0 ? plan["expert_hit_rate"] : Json();
  json["file_ms_per_token"] = known ? Json(1e3 * realIn(plan, "file_s")) : Json(nullptr);
  json["loss_nats"] = plan["loss_nats"];
  json["calibrated"] = plan["calibrated"];
  return json;
}

const char* stopReasonName(oriel_stop_reason reason) {
  switch (reason) {
    case ORIEL_STOP_TEXT:
      return "stop_text";
    case ORIEL_STOP_LENGTH:
      return "length";
    case ORIEL_STOP_TOKEN:
      return "stop";
    case ORIEL_STOP_CALLBACK:
      return "callback";
    case ORIEL_STOP_CANCELLED:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace cli
