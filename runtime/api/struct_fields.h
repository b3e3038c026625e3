// Where the fields of the app's structs end. Written by python/make_abi.py from the headers: do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oriel/sessions.h"
#include "oriel/tools.h"

// clang-format off
// NOLINTBEGIN(bugprone-sizeof-expression): sizes of pointers are what is meant
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
      ORIEL_END(oriel_options, sink_tokens),
      ORIEL_END(oriel_options, pinned_tokens),
      ORIEL_END(oriel_options, chunk_tokens),
      ORIEL_END(oriel_options, k_format),
      ORIEL_END(oriel_options, v_format),
      ORIEL_END(oriel_options, device),
      ORIEL_END(oriel_options, device_number),
      ORIEL_END(oriel_options, device_timeout_ms),
      ORIEL_END(oriel_options, cache_dir),
      ORIEL_END(oriel_options, log),
      ORIEL_END(oriel_options, log_user),
      ORIEL_END(oriel_options, progress),
      ORIEL_END(oriel_options, progress_user),
      ORIEL_END(oriel_options, allocator),
      ORIEL_END(oriel_options, calibration),
      ORIEL_END(oriel_options, min_window_tokens),
      ORIEL_END(oriel_options, cpu_threads),
      ORIEL_END(oriel_options, f16_layer_count),
      ORIEL_END(oriel_options, f16_layers),
      ORIEL_END(oriel_options, window_shares),
      ORIEL_END(oriel_options, speed),
      ORIEL_END(oriel_options, min_tokens_per_s),
      ORIEL_END(oriel_options, disabled_features),
      ORIEL_END(oriel_options, measure_again),
      ORIEL_END(oriel_options, window_share_count),
      ORIEL_END(oriel_options, calibration_file),
      ORIEL_END(oriel_options, on_file),
      ORIEL_END(oriel_options, expert_slots),
      ORIEL_END(oriel_options, checkpoints),
      ORIEL_END(oriel_options, state_format),
      ORIEL_END(oriel_options, constraints),
      ORIEL_END(oriel_options, sessions),
      ORIEL_END(oriel_options, session_windows),
      ORIEL_END(oriel_options, session_window_count),
      ORIEL_END(oriel_options, prefix_tokens),
      ORIEL_END(oriel_options, system_prompt),
      ORIEL_END(oriel_options, system_prompt_bytes),
      ORIEL_END(oriel_options, prefix_file),
      ORIEL_END(oriel_options, transcript_bytes),
      ORIEL_END(oriel_options, reserved_sessions),
      ORIEL_END(oriel_options, enabled_features),
      ORIEL_END(oriel_options, device_test),
      ORIEL_END(oriel_options, activation_bits),
      ORIEL_END(oriel_options, draft_tokens),
      ORIEL_END(oriel_options, recall_tokens),
      ORIEL_END(oriel_options, draft_model),
      ORIEL_END(oriel_options, recall_bytes),
      ORIEL_END(oriel_options, recall_dir),
      ORIEL_END(oriel_options, error_line),
      ORIEL_END(oriel_options, error_line_bytes),
      ORIEL_END(oriel_options, settings),
      ORIEL_END(oriel_options, setting_count),
  };
};

template <>
struct FieldEnds<oriel_chat_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_chat_options, struct_size),
      ORIEL_END(oriel_chat_options, chat_template),
      ORIEL_END(oriel_chat_options, no_thinking),
      ORIEL_END(oriel_chat_options, date),
      ORIEL_END(oriel_chat_options, thinking),
      ORIEL_END(oriel_chat_options, reserved),
      ORIEL_END(oriel_chat_options, tools),
      ORIEL_END(oriel_chat_options, tools_bytes),
      ORIEL_END(oriel_chat_options, documents),
      ORIEL_END(oriel_chat_options, documents_bytes),
      ORIEL_END(oriel_chat_options, variables),
      ORIEL_END(oriel_chat_options, variables_bytes),
  };
};

template <>
struct FieldEnds<oriel_session_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_session_options, struct_size),
      ORIEL_END(oriel_session_options, first_position),
      ORIEL_END(oriel_session_options, split_turns),
      ORIEL_END(oriel_session_options, chat),
      ORIEL_END(oriel_session_options, assumed_tokens),
      ORIEL_END(oriel_session_options, forget_evicted),
      ORIEL_END(oriel_session_options, reserved),
      ORIEL_END(oriel_session_options, progress),
      ORIEL_END(oriel_session_options, progress_user),
      ORIEL_END(oriel_session_options, window_tokens),
      ORIEL_END(oriel_session_options, reserved_window),
      ORIEL_END(oriel_session_options, settings),
      ORIEL_END(oriel_session_options, setting_count),
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
  };
};

template <>
struct FieldEnds<oriel_generate_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_generate_options, struct_size),
      ORIEL_END(oriel_generate_options, max_tokens),
      ORIEL_END(oriel_generate_options, greedy),
      ORIEL_END(oriel_generate_options, seed),
      ORIEL_END(oriel_generate_options, temperature),
      ORIEL_END(oriel_generate_options, top_k),
      ORIEL_END(oriel_generate_options, top_p),
      ORIEL_END(oriel_generate_options, min_p),
      ORIEL_END(oriel_generate_options, repeat_penalty),
      ORIEL_END(oriel_generate_options, ignore_stop),
      ORIEL_END(oriel_generate_options, stop),
      ORIEL_END(oriel_generate_options, stop_count),
      ORIEL_END(oriel_generate_options, logit_bias),
      ORIEL_END(oriel_generate_options, logit_bias_count),
      ORIEL_END(oriel_generate_options, presence_penalty),
      ORIEL_END(oriel_generate_options, frequency_penalty),
      ORIEL_END(oriel_generate_options, repeat_window),
      ORIEL_END(oriel_generate_options, min_tokens),
      ORIEL_END(oriel_generate_options, logprobs),
      ORIEL_END(oriel_generate_options, top_logprobs),
      ORIEL_END(oriel_generate_options, json_schema),
      ORIEL_END(oriel_generate_options, json_schema_bytes),
      ORIEL_END(oriel_generate_options, grammar),
      ORIEL_END(oriel_generate_options, grammar_bytes),
      ORIEL_END(oriel_generate_options, trigger),
      ORIEL_END(oriel_generate_options, tool_choice),
      ORIEL_END(oriel_generate_options, reserved),
      ORIEL_END(oriel_generate_options, on_part),
      ORIEL_END(oriel_generate_options, part_user),
      ORIEL_END(oriel_generate_options, draft),
      ORIEL_END(oriel_generate_options, reserved_draft),
      ORIEL_END(oriel_generate_options, settings),
      ORIEL_END(oriel_generate_options, setting_count),
  };
};

template <>
struct FieldEnds<oriel_generation> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_generation, struct_size),
      ORIEL_END(oriel_generation, stop_reason),
      ORIEL_END(oriel_generation, tokens),
      ORIEL_END(oriel_generation, prompt_tokens),
      ORIEL_END(oriel_generation, time_to_first_token_ms),
      ORIEL_END(oriel_generation, decode_tokens_per_s),
      ORIEL_END(oriel_generation, tokens_drafted),
      ORIEL_END(oriel_generation, tokens_accepted),
      ORIEL_END(oriel_generation, prompt_tokens_evicted),
      ORIEL_END(oriel_generation, reserved),
  };
};

template <>
struct FieldEnds<oriel_embed_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_embed_options, struct_size),
      ORIEL_END(oriel_embed_options, pooling),
      ORIEL_END(oriel_embed_options, not_normalised),
  };
};

template <>
struct FieldEnds<oriel_stats> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_stats, struct_size),
      ORIEL_END(oriel_stats, position),
      ORIEL_END(oriel_stats, window_used),
      ORIEL_END(oriel_stats, window_capacity),
      ORIEL_END(oriel_stats, evicted),
      ORIEL_END(oriel_stats, device_bytes),
      ORIEL_END(oriel_stats, host_bytes),
      ORIEL_END(oriel_stats, submissions),
      ORIEL_END(oriel_stats, expert_hits),
      ORIEL_END(oriel_stats, expert_misses),
      ORIEL_END(oriel_stats, rows_wanted),
      ORIEL_END(oriel_stats, rows_read),
      ORIEL_END(oriel_stats, tokens_read_again),
      ORIEL_END(oriel_stats, tokens_drafted),
      ORIEL_END(oriel_stats, tokens_accepted),
      ORIEL_END(oriel_stats, tokens_kept),
      ORIEL_END(oriel_stats, tokens_recalled),
      ORIEL_END(oriel_stats, reserved_recall),
  };
};

template <>
struct FieldEnds<oriel_view> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_view, struct_size),
      ORIEL_END(oriel_view, position),
      ORIEL_END(oriel_view, first_visible),
      ORIEL_END(oriel_view, first_stored),
      ORIEL_END(oriel_view, sinks_used),
      ORIEL_END(oriel_view, turn_count),
      ORIEL_END(oriel_view, group_first_visible),
  };
};

template <>
struct FieldEnds<oriel_plan> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_plan, struct_size),
      ORIEL_END(oriel_plan, fits),
      ORIEL_END(oriel_plan, memory_bytes),
      ORIEL_END(oriel_plan, total_bytes),
      ORIEL_END(oriel_plan, weights_bytes),
      ORIEL_END(oriel_plan, kv_bytes),
      ORIEL_END(oriel_plan, activation_bytes),
      ORIEL_END(oriel_plan, staging_bytes),
      ORIEL_END(oriel_plan, host_bytes),
      ORIEL_END(oriel_plan, minimum_bytes),
      ORIEL_END(oriel_plan, kv_bytes_per_token),
      ORIEL_END(oriel_plan, window_tokens),
      ORIEL_END(oriel_plan, sink_tokens),
      ORIEL_END(oriel_plan, ring_tokens),
      ORIEL_END(oriel_plan, chunk_tokens),
      ORIEL_END(oriel_plan, context_train_tokens),
      ORIEL_END(oriel_plan, k_format),
      ORIEL_END(oriel_plan, v_format),
      ORIEL_END(oriel_plan, weights_read_bytes_per_token),
      ORIEL_END(oriel_plan, crossover_tokens),
      ORIEL_END(oriel_plan, loss_nats),
      ORIEL_END(oriel_plan, raised_layers),
      ORIEL_END(oriel_plan, choice_count),
      ORIEL_END(oriel_plan, choices),
      ORIEL_END(oriel_plan, calibrated),
      ORIEL_END(oriel_plan, weights_unknown),
      ORIEL_END(oriel_plan, kv_window_bytes),
      ORIEL_END(oriel_plan, group_count),
      ORIEL_END(oriel_plan, groups),
      ORIEL_END(oriel_plan, raised_by_bias),
      ORIEL_END(oriel_plan, raised_by_norm),
      ORIEL_END(oriel_plan, window_shares),
      ORIEL_END(oriel_plan, head_read_bytes),
      ORIEL_END(oriel_plan, decode),
      ORIEL_END(oriel_plan, prefill),
      ORIEL_END(oriel_plan, on_file_bytes),
      ORIEL_END(oriel_plan, expert_slots),
      ORIEL_END(oriel_plan, expert_count),
      ORIEL_END(oriel_plan, expert_hit_rate),
      ORIEL_END(oriel_plan, file_s),
      ORIEL_END(oriel_plan, state_bytes),
      ORIEL_END(oriel_plan, state_slots),
      ORIEL_END(oriel_plan, checkpoints),
      ORIEL_END(oriel_plan, state_format),
      ORIEL_END(oriel_plan, constraint_bytes),
      ORIEL_END(oriel_plan, sessions),
      ORIEL_END(oriel_plan, prefix_tokens),
      ORIEL_END(oriel_plan, prefix_bytes),
      ORIEL_END(oriel_plan, session_bytes),
      ORIEL_END(oriel_plan, transcript_bytes),
      ORIEL_END(oriel_plan, session_windows),
      ORIEL_END(oriel_plan, trim_bytes),
      ORIEL_END(oriel_plan, draft_bytes),
      ORIEL_END(oriel_plan, draft_tokens),
      ORIEL_END(oriel_plan, activation_bits),
      ORIEL_END(oriel_plan, draft_weights_bytes),
      ORIEL_END(oriel_plan, recall_tokens),
      ORIEL_END(oriel_plan, reserved_recall),
      ORIEL_END(oriel_plan, recall_memory_bytes),
      ORIEL_END(oriel_plan, recall_file_bytes),
      ORIEL_END(oriel_plan, recall_file_tokens),
  };
};

template <>
struct FieldEnds<oriel_model_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_model_info, struct_size),
      ORIEL_END(oriel_model_info, architecture),
      ORIEL_END(oriel_model_info, name),
      ORIEL_END(oriel_model_info, tokenizer),
      ORIEL_END(oriel_model_info, chat_template),
      ORIEL_END(oriel_model_info, tensor_types),
      ORIEL_END(oriel_model_info, device),
      ORIEL_END(oriel_model_info, driver),
      ORIEL_END(oriel_model_info, n_layers),
      ORIEL_END(oriel_model_info, n_heads),
      ORIEL_END(oriel_model_info, n_kv_heads),
      ORIEL_END(oriel_model_info, head_dim),
      ORIEL_END(oriel_model_info, n_embd),
      ORIEL_END(oriel_model_info, n_ff),
      ORIEL_END(oriel_model_info, n_vocab),
      ORIEL_END(oriel_model_info, context_train),
      ORIEL_END(oriel_model_info, parameters),
      ORIEL_END(oriel_model_info, file_bytes),
      ORIEL_END(oriel_model_info, bos_id),
      ORIEL_END(oriel_model_info, eos_id),
      ORIEL_END(oriel_model_info, add_bos),
      ORIEL_END(oriel_model_info, rope_scaling),
      ORIEL_END(oriel_model_info, group_count),
      ORIEL_END(oriel_model_info, groups),
      ORIEL_END(oriel_model_info, window_train),
      ORIEL_END(oriel_model_info, pipelines),
      ORIEL_END(oriel_model_info, pipelines_from_cache),
      ORIEL_END(oriel_model_info, pipelines_ms),
      ORIEL_END(oriel_model_info, device_trust),
  };
};

template <>
struct FieldEnds<oriel_file_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_file_info, struct_size),
      ORIEL_END(oriel_file_info, architecture),
      ORIEL_END(oriel_file_info, name),
      ORIEL_END(oriel_file_info, size_label),
      ORIEL_END(oriel_file_info, license),
      ORIEL_END(oriel_file_info, tokenizer),
      ORIEL_END(oriel_file_info, chat_template),
      ORIEL_END(oriel_file_info, n_layers),
      ORIEL_END(oriel_file_info, n_heads),
      ORIEL_END(oriel_file_info, n_kv_heads),
      ORIEL_END(oriel_file_info, head_dim),
      ORIEL_END(oriel_file_info, n_embd),
      ORIEL_END(oriel_file_info, n_ff),
      ORIEL_END(oriel_file_info, n_vocab),
      ORIEL_END(oriel_file_info, n_experts),
      ORIEL_END(oriel_file_info, context_train),
      ORIEL_END(oriel_file_info, tensor_count),
      ORIEL_END(oriel_file_info, parameters),
      ORIEL_END(oriel_file_info, file_bytes),
      ORIEL_END(oriel_file_info, bos_id),
      ORIEL_END(oriel_file_info, eos_id),
      ORIEL_END(oriel_file_info, add_bos),
      ORIEL_END(oriel_file_info, tensor_type_count),
      ORIEL_END(oriel_file_info, tensor_types),
      ORIEL_END(oriel_file_info, runs),
      ORIEL_END(oriel_file_info, missing_count),
      ORIEL_END(oriel_file_info, missing),
      ORIEL_END(oriel_file_info, rope_scaling),
      ORIEL_END(oriel_file_info, group_count),
      ORIEL_END(oriel_file_info, groups),
      ORIEL_END(oriel_file_info, window_train),
  };
};

template <>
struct FieldEnds<oriel_device_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_device_info, struct_size),
      ORIEL_END(oriel_device_info, name),
      ORIEL_END(oriel_device_info, driver),
      ORIEL_END(oriel_device_info, kind),
      ORIEL_END(oriel_device_info, features),
      ORIEL_END(oriel_device_info, reason),
      ORIEL_END(oriel_device_info, usable),
      ORIEL_END(oriel_device_info, memory_bytes),
      ORIEL_END(oriel_device_info, faults),
      ORIEL_END(oriel_device_info, verdict),
      ORIEL_END(oriel_device_info, kernels_right),
      ORIEL_END(oriel_device_info, kernels_wrong),
  };
};

template <>
struct FieldEnds<oriel_prefix_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_prefix_info, struct_size),
      ORIEL_END(oriel_prefix_info, tokens),
      ORIEL_END(oriel_prefix_info, capacity),
      ORIEL_END(oriel_prefix_info, bytes),
      ORIEL_END(oriel_prefix_info, trained),
      ORIEL_END(oriel_prefix_info, reserved),
  };
};

template <>
struct FieldEnds<oriel_transcript_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_transcript_info, struct_size),
      ORIEL_END(oriel_transcript_info, messages),
      ORIEL_END(oriel_transcript_info, dropped),
      ORIEL_END(oriel_transcript_info, bytes),
      ORIEL_END(oriel_transcript_info, capacity),
  };
};

template <>
struct FieldEnds<oriel_snapshot_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_snapshot_info, struct_size),
      ORIEL_END(oriel_snapshot_info, version),
      ORIEL_END(oriel_snapshot_info, readable),
      ORIEL_END(oriel_snapshot_info, model),
      ORIEL_END(oriel_snapshot_info, architecture),
      ORIEL_END(oriel_snapshot_info, model_hash),
      ORIEL_END(oriel_snapshot_info, bytes),
      ORIEL_END(oriel_snapshot_info, position),
      ORIEL_END(oriel_snapshot_info, tokens_held),
      ORIEL_END(oriel_snapshot_info, turns),
      ORIEL_END(oriel_snapshot_info, messages),
      ORIEL_END(oriel_snapshot_info, window_tokens),
      ORIEL_END(oriel_snapshot_info, sink_tokens),
      ORIEL_END(oriel_snapshot_info, chunk_tokens),
      ORIEL_END(oriel_snapshot_info, k_format),
      ORIEL_END(oriel_snapshot_info, v_format),
      ORIEL_END(oriel_snapshot_info, chat_template),
      ORIEL_END(oriel_snapshot_info, saved_at),
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
struct FieldEnds<oriel_resident> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_resident, struct_size),
      ORIEL_END(oriel_resident, level),
      ORIEL_END(oriel_resident, paused),
      ORIEL_END(oriel_resident, weights_bytes),
      ORIEL_END(oriel_resident, kv_bytes),
      ORIEL_END(oriel_resident, activation_bytes),
      ORIEL_END(oriel_resident, staging_bytes),
      ORIEL_END(oriel_resident, host_bytes),
      ORIEL_END(oriel_resident, total_bytes),
  };
};

template <>
struct FieldEnds<oriel_recover_options> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_recover_options, struct_size),
      ORIEL_END(oriel_recover_options, device),
      ORIEL_END(oriel_recover_options, device_number),
      ORIEL_END(oriel_recover_options, in_batches),
      ORIEL_END(oriel_recover_options, reserved),
      ORIEL_END(oriel_recover_options, progress),
      ORIEL_END(oriel_recover_options, progress_user),
  };
};

template <>
struct FieldEnds<oriel_recovered> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_recovered, struct_size),
      ORIEL_END(oriel_recovered, device),
      ORIEL_END(oriel_recovered, same_device),
      ORIEL_END(oriel_recovered, device_name),
      ORIEL_END(oriel_recovered, tokens_held),
      ORIEL_END(oriel_recovered, tokens_read),
      ORIEL_END(oriel_recovered, tokens_dropped),
      ORIEL_END(oriel_recovered, exact),
      ORIEL_END(oriel_recovered, reserved),
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
      ORIEL_END(oriel_speed, reserved),
      ORIEL_END(oriel_speed, file_bytes_per_s),
  };
};

template <>
struct FieldEnds<oriel_prediction> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_prediction, struct_size),
      ORIEL_END(oriel_prediction, decode_tokens_per_s),
      ORIEL_END(oriel_prediction, prefill_tokens_per_s),
      ORIEL_END(oriel_prediction, decode_limit),
      ORIEL_END(oriel_prediction, reserved),
      ORIEL_END(oriel_prediction, crossover_tokens),
  };
};

template <>
struct FieldEnds<oriel_check> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_check, struct_size),
      ORIEL_END(oriel_check, name),
      ORIEL_END(oriel_check, result),
      ORIEL_END(oriel_check, reserved),
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
struct FieldEnds<oriel_shape_info> {
  static constexpr uint16_t list[] = {
      ORIEL_END(oriel_shape_info, struct_size),
      ORIEL_END(oriel_shape_info, name),
      ORIEL_END(oriel_shape_info, n_layers),
      ORIEL_END(oriel_shape_info, n_heads),
      ORIEL_END(oriel_shape_info, n_kv_heads),
      ORIEL_END(oriel_shape_info, head_dim),
      ORIEL_END(oriel_shape_info, n_embd),
      ORIEL_END(oriel_shape_info, n_ff),
      ORIEL_END(oriel_shape_info, n_vocab),
      ORIEL_END(oriel_shape_info, context_train),
      ORIEL_END(oriel_shape_info, sliding_layers),
      ORIEL_END(oriel_shape_info, sliding_window_tokens),
      ORIEL_END(oriel_shape_info, shared_layers),
      ORIEL_END(oriel_shape_info, latent_dim),
      ORIEL_END(oriel_shape_info, parameters),
      ORIEL_END(oriel_shape_info, architecture),
      ORIEL_END(oriel_shape_info, convolution_layers),
      ORIEL_END(oriel_shape_info, state_layers),
      ORIEL_END(oriel_shape_info, state_bytes),
      ORIEL_END(oriel_shape_info, n_experts),
      ORIEL_END(oriel_shape_info, n_experts_used),
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
