// Descriptions of plans, models, sessions, files and devices. The describe calls write them as JSON.
#pragma once

#include "base/checked.h"
#include "base/choices.h"

namespace oriel_internal {

constexpr uint32_t kMostGroups = 8;  ///< groups of layers that see the same tokens

enum class GroupKind : uint32_t {
  kSession,      ///< keys and values of the session's sinks and window
  kSliding,      ///< keys and values of the last window_tokens tokens, without sinks
  kConvolution,  ///< one column for each of the last window_tokens tokens
  kState,        ///< a state computed from all tokens
};

/// Layers that see the same tokens.
struct LayerGroup {
  GroupKind kind;
  uint32_t layers;           ///< 0 only in the first group
  uint32_t window_tokens;    ///< 0: a state
  uint32_t ring_tokens;      ///< slots after the sinks; for a state, its versions
  uint64_t bytes_per_token;  ///< per token, or per version of the state
  uint64_t bytes;            ///< for window_tokens tokens, or for all versions
};

struct PlanChoice {
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  uint32_t fits;
  uint32_t window_tokens;
  uint32_t shortest_window_tokens;
  uint32_t chunk_tokens;
  const char* refused;  ///< null, "quality" or "speed"
  uint64_t total_bytes;
  uint64_t minimum_bytes;
  double loss_nats;
  double decode_tokens_per_s;
};

/// Predicted seconds per step.
struct StepSeconds {
  uint32_t tokens;  ///< 0: not known
  uint32_t group_count;
  double overhead_s;
  double weights_s;
  double weights_once_s;  ///< part of weights_s that does not depend on the number of tokens
  double head_s;
  struct {
    uint32_t window_tokens;
    double s_per_token;
  } groups[kMostGroups];
};

/// docs/reference/describe.md, "Plan".
struct PlanResult {
  uint32_t fits;
  uint64_t memory_bytes;
  uint64_t total_bytes;
  uint64_t weights_bytes;
  uint64_t mapped_bytes;  ///< part of the weights
  uint64_t kv_bytes;
  uint64_t activation_bytes;
  uint64_t staging_bytes;
  uint64_t host_bytes;
  uint64_t minimum_bytes;
  uint64_t kv_bytes_per_token;
  uint32_t window_tokens;
  uint32_t sink_tokens;
  uint32_t ring_tokens;
  uint32_t chunk_tokens;
  uint32_t context_train_tokens;
  oriel_kv_format k_format;
  oriel_kv_format v_format;
  uint64_t weights_read_bytes_per_token;
  uint64_t crossover_tokens;
  double loss_nats;
  uint32_t choice_count;
  PlanChoice choices[4];
  uint32_t calibrated;
  uint32_t weights_unknown;
  uint64_t kv_window_bytes;
  uint32_t group_count;
  LayerGroup groups[kMostGroups];
  uint64_t raised_by_bias[8];  ///< layer i in bit i % 64 of word i / 64
  uint64_t raised_by_norm[8];
  uint8_t window_shares[kMaxLayers];
  uint32_t layer_count;  ///< entries of window_shares
  uint64_t head_read_bytes;
  StepSeconds decode;
  StepSeconds prefill;
  uint64_t on_file_bytes;
  uint32_t expert_slots;
  uint32_t expert_count;
  double expert_hit_rate;
  double file_s;
  uint64_t state_bytes;
  uint32_t state_slots;
  uint32_t checkpoints;
  StateChoice state_format;  ///< kAuto: no layer has a state
  uint64_t constraint_bytes;
  uint32_t sessions;
  uint32_t prefix_tokens;
  uint64_t prefix_bytes;
  uint64_t session_bytes;
  uint64_t transcript_bytes;
  uint32_t session_windows[kMaxSessions];
  uint64_t trim_bytes[5];
  uint64_t draft_bytes;
  uint32_t draft_tokens;
  uint32_t activation_bits;
  uint64_t draft_weights_bytes;
  uint32_t recall_tokens;
  uint64_t recall_memory_bytes;
  uint64_t recall_file_bytes;
  uint64_t recall_file_tokens;
  uint64_t adapter_bytes;  ///< weights and thin vectors
  uint64_t image_bytes;    ///< of the encoder of pictures; part of host_bytes
  uint32_t image_tokens;   ///< most rows of a picture, or of a tile of it; 0: none
};

/// docs/reference/describe.md, "Model".
struct ModelInfo {
  char architecture[64];
  char name[128];
  char tokenizer[64];
  char chat_template[64];
  char tensor_types[256];
  char device[256];
  char driver[256];
  uint32_t n_layers, n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab;
  uint32_t context_train;
  uint64_t parameters;
  uint64_t file_bytes;
  int32_t bos_id, eos_id;  ///< -1: none
  int32_t fill_ids[3];     ///< before, after and inside a gap; -1: none
  uint32_t add_bos;
  char rope_scaling[16];
  uint32_t group_count;
  LayerGroup groups[kMostGroups];
  uint32_t window_train;
  uint32_t pipelines;
  uint32_t pipelines_from_cache;  ///< UINT32_MAX: unknown
  double pipelines_ms;
  char device_trust[512];
};

struct TensorTypeInfo {
  char name[16];
  uint32_t tensors;
  uint64_t parameters;
  uint64_t bytes;
};

/// docs/reference/describe.md, "File".
struct FileInfo {
  char architecture[64];
  char name[128];
  char size_label[32];
  char license[64];
  char tokenizer[64];
  char chat_template[64];
  uint32_t n_layers, n_heads, n_kv_heads, head_dim, n_embd, n_ff, n_vocab, n_experts;
  uint32_t context_train;
  uint32_t tensor_count;
  uint64_t parameters;
  uint64_t file_bytes;
  int32_t bos_id, eos_id;
  int32_t fill_ids[3];
  uint32_t add_bos;
  uint32_t tensor_type_count;
  TensorTypeInfo tensor_types[24];
  uint32_t runs;
  uint32_t missing_count;
  char missing[4][512];
  char rope_scaling[16];
  uint32_t group_count;
  LayerGroup groups[kMostGroups];
  uint32_t window_train;
  uint32_t predicts;  ///< the file has a prediction block that "speculate" uses
};

/// docs/reference/describe.md, "Device".
struct DeviceInfo {
  char name[256];
  char driver[256];
  char kind[16];
  char features[256];
  char reason[256];
  uint32_t usable;
  uint64_t memory_bytes;  ///< of the largest heap of its own
  uint64_t free_bytes;    ///< of that; 0: the driver does not say
  char faults[320];
  char limits[512];  ///< device limits from the driver, for a report
  char verdict[256];
  uint32_t kernels_right, kernels_wrong;
};

/// Positions of a session's tokens, as in oriel_stats.
struct SessionView {
  uint64_t position;
  uint64_t first_visible;
  uint64_t first_stored;
  uint32_t sinks_used;
  uint32_t turn_count;
  uint32_t window_used;  ///< tokens visible to the latest one, including sinks
  uint64_t group_first_visible[kMostGroups];
};

}  // namespace oriel_internal
