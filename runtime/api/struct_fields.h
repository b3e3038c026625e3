// The end offset of each field of the app's structs. Written by scripts/struct_fields.py from the headers: do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oriel/advanced.h"
#include "oriel/tools.h"

// clang-format off
// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are intended
namespace oriel_internal {

template <typename T>
struct FieldEnds;

#define ORIEL_END(type, field) static_cast<uint16_t>(offsetof(type, field) + sizeof(type::field))

template <>
struct FieldEnds<oriel_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_options, struct_size),
      ORIEL_END(oriel_options, memory_bytes),
      ORIEL_END(oriel_options, window_tokens),
      ORIEL_END(oriel_options, sessions),
      ORIEL_END(oriel_options, threads),
      ORIEL_END(oriel_options, device),
      ORIEL_END(oriel_options, cache_folder),
      ORIEL_END(oriel_options, system_prompt),
      ORIEL_END(oriel_options, log),
      ORIEL_END(oriel_options, log_user),
      ORIEL_END(oriel_options, progress),
      ORIEL_END(oriel_options, progress_user),
      ORIEL_END(oriel_options, allocator),
      ORIEL_END(oriel_options, error_line),
      ORIEL_END(oriel_options, error_line_bytes),
      ORIEL_END(oriel_options, settings),
      ORIEL_END(oriel_options, setting_count),
      ORIEL_END(oriel_options, calibration),
      ORIEL_END(oriel_options, speed),
  };
};

template <>
struct FieldEnds<oriel_plan> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_plan, struct_size),
      ORIEL_END(oriel_plan, fits),
      ORIEL_END(oriel_plan, weights_unknown),
      ORIEL_END(oriel_plan, memory_bytes),
      ORIEL_END(oriel_plan, total_bytes),
      ORIEL_END(oriel_plan, weights_bytes),
      ORIEL_END(oriel_plan, mapped_bytes),
      ORIEL_END(oriel_plan, kv_bytes),
      ORIEL_END(oriel_plan, activation_bytes),
      ORIEL_END(oriel_plan, staging_bytes),
      ORIEL_END(oriel_plan, host_bytes),
      ORIEL_END(oriel_plan, minimum_bytes),
      ORIEL_END(oriel_plan, kv_bytes_per_token),
      ORIEL_END(oriel_plan, window_tokens),
      ORIEL_END(oriel_plan, sink_tokens),
      ORIEL_END(oriel_plan, prefill_batch_tokens),
      ORIEL_END(oriel_plan, sessions),
      ORIEL_END(oriel_plan, context_train_tokens),
      ORIEL_END(oriel_plan, k_format),
      ORIEL_END(oriel_plan, v_format),
      ORIEL_END(oriel_plan, loss_nats),
  };
};

template <>
struct FieldEnds<oriel_session_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_session_options, struct_size),
      ORIEL_END(oriel_session_options, chat_template),
      ORIEL_END(oriel_session_options, tools),
      ORIEL_END(oriel_session_options, progress),
      ORIEL_END(oriel_session_options, progress_user),
      ORIEL_END(oriel_session_options, settings),
      ORIEL_END(oriel_session_options, setting_count),
  };
};

template <>
struct FieldEnds<oriel_stats> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_stats, struct_size),
      ORIEL_END(oriel_stats, position),
      ORIEL_END(oriel_stats, evicted),
      ORIEL_END(oriel_stats, first_visible),
      ORIEL_END(oriel_stats, first_stored),
      ORIEL_END(oriel_stats, sinks_used),
      ORIEL_END(oriel_stats, window_used),
      ORIEL_END(oriel_stats, window_capacity),
      ORIEL_END(oriel_stats, turn_count),
      ORIEL_END(oriel_stats, device_bytes),
      ORIEL_END(oriel_stats, host_bytes),
  };
};

template <>
struct FieldEnds<oriel_reply_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_reply_options, struct_size),
      ORIEL_END(oriel_reply_options, max_tokens),
      ORIEL_END(oriel_reply_options, greedy),
      ORIEL_END(oriel_reply_options, temperature),
      ORIEL_END(oriel_reply_options, seed),
      ORIEL_END(oriel_reply_options, schema),
      ORIEL_END(oriel_reply_options, stop),
      ORIEL_END(oriel_reply_options, stop_count),
      ORIEL_END(oriel_reply_options, on_part),
      ORIEL_END(oriel_reply_options, part_user),
      ORIEL_END(oriel_reply_options, settings),
      ORIEL_END(oriel_reply_options, setting_count),
      ORIEL_END(oriel_reply_options, on_logits),
      ORIEL_END(oriel_reply_options, logits_user),
  };
};

template <>
struct FieldEnds<oriel_generation> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_generation, struct_size),
      ORIEL_END(oriel_generation, stop_reason),
      ORIEL_END(oriel_generation, tokens),
      ORIEL_END(oriel_generation, prompt_tokens),
      ORIEL_END(oriel_generation, prompt_tokens_evicted),
      ORIEL_END(oriel_generation, tokens_drafted),
      ORIEL_END(oriel_generation, tokens_accepted),
      ORIEL_END(oriel_generation, time_to_first_token_ms),
      ORIEL_END(oriel_generation, decode_tokens_per_s),
  };
};

template <>
struct FieldEnds<oriel_restored> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_restored, struct_size),
      ORIEL_END(oriel_restored, how),
      ORIEL_END(oriel_restored, rounded),
      ORIEL_END(oriel_restored, tokens_held),
      ORIEL_END(oriel_restored, tokens_dropped),
      ORIEL_END(oriel_restored, tokens_read),
  };
};

template <>
struct FieldEnds<oriel_part> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_part, struct_size),
      ORIEL_END(oriel_part, kind),
      ORIEL_END(oriel_part, call),
      ORIEL_END(oriel_part, text),
      ORIEL_END(oriel_part, text_bytes),
      ORIEL_END(oriel_part, path),
  };
};

template <>
struct FieldEnds<oriel_step_logits> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_step_logits, struct_size),
      ORIEL_END(oriel_step_logits, logits),
      ORIEL_END(oriel_step_logits, count),
      ORIEL_END(oriel_step_logits, position),
      ORIEL_END(oriel_step_logits, tokens),
  };
};

template <>
struct FieldEnds<oriel_reply> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_reply, struct_size),
      ORIEL_END(oriel_reply, session),
      ORIEL_END(oriel_reply, options),
      ORIEL_END(oriel_reply, on_token),
      ORIEL_END(oriel_reply, user),
      ORIEL_END(oriel_reply, result),
      ORIEL_END(oriel_reply, generate),
      ORIEL_END(oriel_reply, status),
  };
};

template <>
struct FieldEnds<oriel_recovered> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_recovered, struct_size),
      ORIEL_END(oriel_recovered, on_cpu),
      ORIEL_END(oriel_recovered, same_device),
      ORIEL_END(oriel_recovered, device_name),
      ORIEL_END(oriel_recovered, tokens_held),
      ORIEL_END(oriel_recovered, tokens_read),
      ORIEL_END(oriel_recovered, tokens_dropped),
      ORIEL_END(oriel_recovered, exact),
  };
};

template <>
struct FieldEnds<oriel_calibration> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_calibration, struct_size),
      ORIEL_END(oriel_calibration, forget_scale),
      ORIEL_END(oriel_calibration, forget_power),
      ORIEL_END(oriel_calibration, keys_int8),
      ORIEL_END(oriel_calibration, keys_int4),
      ORIEL_END(oriel_calibration, values_int8),
      ORIEL_END(oriel_calibration, values_int4),
      ORIEL_END(oriel_calibration, layers),
      ORIEL_END(oriel_calibration, layer_count),
      ORIEL_END(oriel_calibration, profile_count),
      ORIEL_END(oriel_calibration, kl_limit),
      ORIEL_END(oriel_calibration, state_f16),
      ORIEL_END(oriel_calibration, state_int8),
      ORIEL_END(oriel_calibration, profiles),
  };
};

template <>
struct FieldEnds<oriel_speed> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_speed, struct_size),
      ORIEL_END(oriel_speed, device),
      ORIEL_END(oriel_speed, driver),
      ORIEL_END(oriel_speed, submit_ns),
      ORIEL_END(oriel_speed, dispatch_ns),
      ORIEL_END(oriel_speed, read_bytes_per_s),
      ORIEL_END(oriel_speed, shape),
      ORIEL_END(oriel_speed, weight_count),
      ORIEL_END(oriel_speed, cache_count),
      ORIEL_END(oriel_speed, weights),
      ORIEL_END(oriel_speed, caches),
      ORIEL_END(oriel_speed, kernels_changed),
      ORIEL_END(oriel_speed, file_bytes_per_s),
  };
};

template <>
struct FieldEnds<oriel_prediction> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_prediction, struct_size),
      ORIEL_END(oriel_prediction, decode_tokens_per_s),
      ORIEL_END(oriel_prediction, prefill_tokens_per_s),
      ORIEL_END(oriel_prediction, crossover_tokens),
      ORIEL_END(oriel_prediction, decode_limit),
  };
};

template <>
struct FieldEnds<oriel_check> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_check, struct_size),
      ORIEL_END(oriel_check, name),
      ORIEL_END(oriel_check, result),
      ORIEL_END(oriel_check, error),
      ORIEL_END(oriel_check, limit),
      ORIEL_END(oriel_check, reason),
  };
};

template <>
struct FieldEnds<oriel_candidate> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_candidate, struct_size),
      ORIEL_END(oriel_candidate, op),
      ORIEL_END(oriel_candidate, name),
      ORIEL_END(oriel_candidate, microseconds),
      ORIEL_END(oriel_candidate, chosen),
      ORIEL_END(oriel_candidate, standard),
  };
};

template <>
struct FieldEnds<oriel_self_test_result> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_self_test_result, struct_size),
      ORIEL_END(oriel_self_test_result, device),
      ORIEL_END(oriel_self_test_result, driver),
      ORIEL_END(oriel_self_test_result, features),
      ORIEL_END(oriel_self_test_result, feature_names),
      ORIEL_END(oriel_self_test_result, passed),
      ORIEL_END(oriel_self_test_result, failed),
      ORIEL_END(oriel_self_test_result, skipped),
      ORIEL_END(oriel_self_test_result, candidates_kept),
  };
};

template <>
struct FieldEnds<oriel_json_item> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_json_item, struct_size),
      ORIEL_END(oriel_json_item, kind),
      ORIEL_END(oriel_json_item, count),
      ORIEL_END(oriel_json_item, text),
      ORIEL_END(oriel_json_item, text_bytes),
      ORIEL_END(oriel_json_item, key),
      ORIEL_END(oriel_json_item, key_bytes),
  };
};

#undef ORIEL_END

}  // namespace oriel_internal
// NOLINTEND(bugprone-sizeof-expression)
// clang-format on
