// An app's choices as values: front fields and settings of oriel.h combined (options/settings.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checked.h"
#include "oriel/advanced.h"

namespace oriel_internal {

enum class DeviceKind : uint32_t {
  kAuto,    ///< Vulkan: discrete, integrated, virtual, other; then the CPU
  kVulkan,  ///< Vulkan or an error
  kCpu,
  kNone,  ///< header and tokenizer only
};
enum class StateChoice : uint32_t { kAuto, kF32, kF16, kInt8 };
enum class Offload : uint32_t {
  kAuto,  ///< table rows; experts if the model does not fit with them in memory
  kNone,
  kRows,
  kAll,  ///< table rows and experts
};
enum class DeviceTest : uint32_t {
  kAuto,    ///< once per driver, if there is a cache folder
  kAlways,  ///< at every load
  kNever,   ///< ignores earlier verdicts, too
};
enum class DraftChoice : uint32_t { kAuto, kAlways, kNever };
enum class ToolChoice : uint32_t { kFree, kChecked, kRequired, kNone };

constexpr uint32_t kDefaultWindow = 8192;  ///< tokens; longest default window
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostStops = 16;
constexpr uint32_t kMostBiases = 1024;
constexpr uint32_t kMostTexts = 16;  ///< of a list of them in LoadLists

/// Storage for list options; the options point here.
struct LoadLists {
  uint8_t window_shares[kMaxLayers];
  uint8_t f16_layers[kMaxLayers];
  uint32_t session_windows[kMaxSessions];
  uint32_t control_layers[2];
  const char* lora[kMostTexts];
  const char* control_vectors[kMostTexts];
};

/// Scope "load". Zero is the default unless a line says otherwise.
struct LoadOptions {
  uint64_t memory_bytes;
  uint32_t window_tokens;  ///< ORIEL_WINDOW_MAX: the trained context
  uint32_t sink_tokens;    ///< UINT32_MAX: none
  uint32_t chunk_tokens;   ///< prefill batch
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  DeviceKind device;
  uint32_t device_number;  ///< of a Vulkan device: 1 + its index; 0: Oriel chooses
  uint32_t device_timeout_ms;
  const char* cache_dir;
  const char* prepared_dir;
  uint64_t prepared_bytes;
  oriel_log_fn log;
  void* log_user;
  oriel_progress_fn progress;
  void* progress_user;
  const oriel_allocator* allocator;
  const oriel_calibration* calibration;
  uint32_t min_window_tokens;
  uint32_t cpu_threads;
  uint32_t f16_layer_count;
  const uint8_t* f16_layers;
  const uint8_t* window_shares;
  const oriel_speed* speed;
  double min_tokens_per_s;
  const char* disabled_features;
  uint32_t window_share_count;
  const char* calibration_file;  ///< null: in the model's folder; "": none
  Offload on_file;
  uint32_t expert_slots;
  uint32_t checkpoints;  ///< UINT32_MAX: none
  StateChoice state_format;
  uint32_t constraints;
  uint32_t sessions;
  const uint32_t* session_windows;
  uint32_t session_window_count;
  uint32_t prefix_tokens;
  const char* system_prompt;
  size_t system_prompt_bytes;
  const char* prefix_file;
  uint32_t transcript_bytes;
  const char* enabled_features;
  DeviceTest device_test;
  uint32_t activation_bits;
  uint32_t draft_tokens;
  uint32_t recall_tokens;
  const char* draft_model;
  const char* mmproj;     ///< file of the encoder of pictures; null: none
  uint32_t image_tokens;  ///< 0: the encoder's own
  uint64_t recall_bytes;
  const char* recall_dir;
  char* error_line;
  size_t error_line_bytes;
  const char* const* lora;  ///< "FILE" or "FILE:SCALE"
  const char* const* control_vectors;
  const uint32_t* control_layers;  ///< the first and the last that those steer
  uint32_t lora_count;
  uint32_t control_vector_count;
  uint32_t control_layer_count;  ///< 2 or 0
};

/// How to turn a conversation into text.
struct ChatSettings {
  const char* chat_template;
  uint32_t no_thinking;
  uint32_t thinking;
  uint32_t date;
  const char* tools;
  size_t tools_bytes;
  const char* documents;
  size_t documents_bytes;
  const char* variables;
  size_t variables_bytes;
};

/// Scope "session".
struct SessionSettings {
  ChatSettings chat;
  uint64_t first_position;  ///< for tests: rotary position of the first token
  uint64_t assumed_tokens;  ///< zero tokens before the session's start, to measure at a depth
  uint32_t split_turns;
  uint32_t forget_evicted;
  uint32_t follow_template;
  uint32_t window_tokens;
  oriel_progress_fn progress;
  void* progress_user;
  const char* adapters;
  double max_tokens_per_s;  ///< 0: no limit
  double duty;              ///< share of the time that the device works; 0: all
};

struct LogitBias {
  int32_t id;
  float bias;
};

/// Scope "reply".
struct ReplyChoices {
  uint32_t max_tokens;
  uint32_t greedy;
  uint64_t seed;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  float repeat_penalty;
  uint32_t ignore_stop;
  const char* stop[kMostStops];
  size_t stop_count;
  LogitBias logit_bias[kMostBiases];
  size_t logit_bias_count;
  float presence_penalty;
  float frequency_penalty;
  uint32_t repeat_window;
  float typical_p;
  float top_n_sigma;
  float xtc_probability;
  float xtc_threshold;
  float dry_multiplier;
  float dry_base;
  uint32_t dry_allowed_length;
  uint32_t dry_window;
  const char* dry_breakers[kMostStops];
  size_t dry_breakers_count;
  uint32_t min_tokens;
  uint32_t max_thought_tokens;  ///< UINT32_MAX: none
  uint32_t logprobs;
  uint32_t top_logprobs;
  const char* json_schema;
  size_t json_schema_bytes;
  const char* grammar;
  size_t grammar_bytes;
  const char* trigger;
  uint32_t strict_schema;
  uint32_t open_objects;
  ToolChoice tool_choice;
  uint32_t value_parts;
  oriel_part_fn on_part;
  void* part_user;
  oriel_step_logits_fn on_logits;
  void* logits_user;
  DraftChoice draft;
};

}  // namespace oriel_internal
