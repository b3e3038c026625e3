#include "report.h"

#include <algorithm>

#include "plan/layer_groups.h"

namespace cli {

const char* kvFormatName(oriel_kv_format format) {
  switch (format) {
    case ORIEL_KV_AUTO:
      return "auto";
    case ORIEL_KV_F16:
      return "f16";
    case ORIEL_KV_INT8:
      return "int8";
    case ORIEL_KV_INT4:
      return "int4";
  }
  return "unknown";
}

const char* stateFormatName(oriel_state_format format) {
  switch (format) {
    case ORIEL_STATE_AUTO:
      return "auto";
    case ORIEL_STATE_F32:
      return "f32";
    case ORIEL_STATE_F16:
      return "f16";
    case ORIEL_STATE_INT8:
      return "int8";
  }
  return "unknown";
}

Json stateFormatField(const oriel_plan& plan) {
  return plan.state_format == ORIEL_STATE_AUTO ? Json(nullptr)
                                               : Json(stateFormatName(plan.state_format));
}

Json fitsField(const oriel_plan& plan, bool fits) {
  return plan.weights_unknown != 0 ? Json(nullptr) : Json(fits);
}

Json planFields(const oriel_plan& plan) {
  const bool weighs = plan.weights_unknown == 0;
  Json json;
  json["fits"] = fitsField(plan, plan.fits != 0);
  json["memory_bytes"] = plan.memory_bytes;
  json["total_bytes"] = plan.total_bytes;
  json["weights_bytes"] = weighs ? Json(plan.weights_bytes) : Json(nullptr);
  json["kv_bytes"] = plan.kv_bytes;
  json["activation_bytes"] = plan.activation_bytes;
  json["staging_bytes"] = plan.staging_bytes;
  json["host_bytes"] = plan.host_bytes;
  json["constraint_bytes"] = plan.constraint_bytes;
  json["on_file_bytes"] = weighs ? Json(plan.on_file_bytes) : Json(nullptr);
  json["expert_slots"] = plan.expert_slots;
  json["expert_count"] = plan.expert_count;
  json["minimum_bytes"] = weighs ? Json(plan.minimum_bytes) : Json(nullptr);
  json["state_bytes"] = std::max(plan.sessions, 1u) * stateBytes(plan.groups, plan.group_count);
  json["window_tokens"] = plan.window_tokens;
  json["sink_tokens"] = plan.sink_tokens;
  json["ring_tokens"] = plan.ring_tokens;
  json["chunk_tokens"] = plan.chunk_tokens;
  json["context_train"] = plan.context_train_tokens;
  json["beyond_trained_tokens"] = beyondTrained(plan);
  json["k_format"] = kvFormatName(plan.k_format);
  json["v_format"] = kvFormatName(plan.v_format);
  json["state_format"] = stateFormatField(plan);
  json["activation_bits"] = plan.activation_bits;
  json["kv_bytes_per_token"] = plan.kv_bytes_per_token;
  json["weights_read_bytes_per_token"] =
      weighs ? Json(plan.weights_read_bytes_per_token) : Json(nullptr);
  return json;
}

uint32_t beyondTrained(const oriel_plan& plan) {
  const uint64_t seen = uint64_t{plan.sink_tokens} + plan.window_tokens;
  const uint32_t trained = plan.context_train_tokens;
  return trained != 0 && seen > trained ? static_cast<uint32_t>(seen - trained) : 0;
}

bool predict(const oriel_plan& plan, uint64_t depth, uint32_t prompt_tokens,
             oriel_prediction* prediction) {
  *prediction = {};
  prediction->struct_size = sizeof(*prediction);
  return oriel_plan_predict(&plan, depth, prompt_tokens, prediction) == ORIEL_OK;
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

Json predictedFields(const oriel_plan& plan, const PredictedAt& at) {
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
  json["crossover_tokens"] =
      plan.weights_unknown == 0 ? Json(plan.crossover_tokens) : Json(nullptr);
  json["expert_hit_rate"] = plan.expert_count != 0 ? Json(plan.expert_hit_rate) : Json(nullptr);
  json["file_ms_per_token"] = known ? Json(1e3 * plan.file_s) : Json(nullptr);
  json["loss_nats"] = plan.loss_nats;
  json["calibrated"] = plan.calibrated != 0;
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
