// Architectures as data: metadata keys, tensors, and the behaviour that files do not state.
// To add an architecture, add a row. All rows are read the same way.
#pragma once

#include <cstdint>

#include "gguf/gguf.h"
#include "model/model_desc.h"

namespace oriel_internal {

/// A whole number in the metadata, "<architecture>.<suffix>".
struct CountKey {
  const char* suffix;
  uint32_t ModelDesc::*field;
  uint32_t minimum;
  uint32_t maximum;
  bool required;  ///< otherwise a missing key leaves 0, and the value is derived from others
};

/// Rows or columns of a tensor, as sizes of the model or of the layer's kind.
enum class Extent : uint8_t {
  kOne,
  kEmbedding,
  kHead,       ///< head_dim
  kQueries,    ///< n_heads * head_dim
  kKeyValues,  ///< n_kv_heads * head_dim
  kQkv,        ///< queries, keys and values
  kFeedForward,
  kGateUp,  ///< 2 n_ff
  kVocabulary,
  kRopePairs,        ///< of the main table
  kThreeEmbeddings,  ///< 3 n_embd
  kConvTaps,
  kExperts,
  kExpertFeedForward,  ///< n_ff of an expert
  kLayerInput,         ///< layer_input
  kLayerInputs,        ///< layer_input of all layers
  kGatedQueries,       ///< 2 n_heads * head_dim: for each head its query, then its gate
  kStateInputs,        ///< Mamba-2: gates, channels and heads
  kStateChannels,      ///< StateShape::channels
  kStateTaps,          ///< conv_taps of a state
  kStateHeads,
  kStateKeyHeads,
  kStateValue,   ///< value_dim
  kStateValues,  ///< heads * value_dim
  kStateGroup,   ///< values of the heads that share a key
  // Latent attention.
  kHeads,               ///< n_heads
  kQueryLatent,         ///< query_latent_dim
  kLatent,              ///< latent_dim
  kLatentAndKey,        ///< latent_dim + rope_dim
  kPlainHead,           ///< values of a query head that are not rotated
  kValueHead,           ///< value_dim
  kValueHeads,          ///< n_heads * value_dim
  kPlainAndValueHeads,  ///< n_heads of both
  kGates,               ///< LayerKind::gateCols
  kKeyHeads,            ///< n_kv_heads
  kContext,             ///< context_train
  kExpertInput,         ///< LayerKind::expertCols
  kExpertGateUp,        ///< 2 n_ff of an expert
  kExpertLatent,        ///< Experts::latent
  kValueExperts,        ///< experts that make values
  kTwoStateHeads,       ///< 2 heads of a state
  // Encoders.
  kTokenTypes,  ///< ModelDesc::token_types
  kDense,       ///< ModelDesc::dense
  kLabels,      ///< ModelDesc::labels
  // Draft models.
  kTarget,       ///< target_embd
  kTargetTwice,  ///< 2 target_embd
};

/// Which layers have a tensor.
enum class Where : uint8_t {
  kModel,             ///< a tensor of the whole model
  kModelLayerInputs,  ///< of the whole model, if layers have their own inputs
  kEveryLayer,
  kAttentionLayers,
  kMemoryLayers,  ///< attention with its own KV cache; ignored in other layers
  kConvLayers,
  kDenseLayers,   ///< layers with a dense feed-forward, with or without experts
  kExpertLayers,  ///< layers with experts
  kSharedLayers,  ///< layers with experts and a dense feed-forward
  kLayerInputs,   ///< all layers, if the model has per-layer inputs
  kStateLayers,
  kNormedStateLayers,  ///< state layers with a norm on the state's output
  // Latent attention.
  kQueryLatentLayers,   ///< queries come from a latent of their own
  kQueryWholeLayers,    ///< queries come from the layer's input
  kSplitLatentLayers,   ///< keys and values have separate matrices
  kJoinedLatentLayers,  ///< keys and values share a matrix
  kGatedLayers,         ///< attention output is gated
  kPostNormLayers,      ///< all layers, if branches have optional post-norms
  kWholeValueLayers,    ///< attention with one value matrix
  kValueExpertLayers,   ///< attention with value experts
  kLaterLayers,         ///< all except the first
  kSplitGateLayers,     ///< gate and up matrices are separate
  kFusedGateLayers,     ///< gate and up matrices share a tensor
  kRank,                ///< whole model, if it is a reranker
  kDenseHead,           ///< whole model, with ModelDesc::dense
};

struct TensorRule {
  TensorRole role;
  const char* name;  ///< in layers: the part after "blk.N."
  Where where;
  Extent rows;  ///< kOne: a vector
  Extent cols;
  bool required;
  Extent depth = Extent::kOne;  ///< number of stacked matrices
  TensorRole unless = kNoRole;  ///< not required if this role is present
  bool vector = false;          ///< rows are float vectors, not matrix rows
};

/// True if the layer has such a tensor. False for tensors of the whole model.
bool isIn(const TensorRule& rule, const ModelDesc& desc, uint32_t layer);
/// `kind`: the kind of the tensor's layer. Tensors of the whole model accept any kind.
uint64_t extentOf(const ModelDesc& desc, const LayerKind& kind, Extent extent);

/// Which layers keep a state.
enum class StateLayers : uint8_t {
  kNone,
  kWithoutHeads,  ///< layers without KV heads
  kMost,  ///< all except each full_attention_interval-th, or the layers in attention.recurrent_layers
  kAll,
  kAllBeside,  ///< all, in parallel with attention
  kBranches,   ///< layers without KV heads and feed-forward; each layer has a single branch
};

/// Rotary pairs that turn in text, by rope.dimension_sections.
enum class RopeSections : uint8_t {
  kNone,         ///< all: the key is not read
  kInterleaved,  ///< sections take pairs in turn (Qwen3-VL)
  kContiguous,   ///< each section has pairs next to each other (Qwen2-VL)
};

/// Kind of norm; kByKey: by the file's key, attention.layer_norm_rms_epsilon or attention.layer_norm_epsilon.
enum class NormRule : uint8_t { kRms, kLayer, kByKey };

/// A group of rules that architectures share; ends with a null name.
using TensorRules = const TensorRule*;
constexpr uint32_t kMaxRuleGroups = 14;
/// Rules for the classification head and the dense head, which any architecture may have.
extern const TensorRules kTextHead;

/// Behaviour of an architecture that its files do not state. Keys are "<architecture>.<suffix>".
struct Traits {
  uint8_t activation = kSilu;  ///< of the feed-forward; kXielu reads its numbers from "xielu." keys
  bool plain : 1;              ///< LayerKind::plain
  bool parallel : 1;           ///< LayerKind::parallel
  bool parallel_by_key : 1;    ///< by the key use_parallel_residual
  bool parallel_without_norm : 1;  ///< a layer without ffn_norm is parallel
  NormRule norms = NormRule::kRms;
  bool bare_norms : 1;           ///< ModelDesc::bare_norms
  bool grouped_norms : 1;        ///< attention.group_norm_groups is read
  bool optional_post_norms : 1;  ///< ModelDesc::post_norms, decided by the first layer's tensors
  bool head_norms : 1;           ///< LayerKind::head_norms
  uint8_t gate = kNoGate;        ///< gate of the attention output, if attn_gate is present
  bool qkv_limit : 1;            ///< attention.clamp_kqv is read
  bool learned_positions : 1;    ///< ModelDesc::learned_positions
  bool loops : 1;                ///< num_loops and skip_loop_final_norm are read
  bool scaled_embedding : 1;     ///< embeddings times sqrt(n_embd)
  bool row_norms : 1;            ///< LayerKind::row_norms
  // Encoders.
  bool encoder : 1;                 ///< ModelDesc::encoder, regardless of the file
  bool alibi : 1;                   ///< LayerKind::alibi
  bool fused_gates : 1;             ///< the first layer decides if ffn_up includes the gates
  uint8_t rank_activation = kTanh;  ///< between the classification matrices
  FilePooling rank_pooling = FilePooling::kLast;  ///< source vector of the score
  bool norms_after_rope : 1;                      ///< LayerKind::norms_after_rope

  // Which layers have RoPE.
  uint32_t no_rope_period =
      0;                     ///< the last layer of each period has no RoPE; 0: all layers have it
  bool no_rope_in_full : 1;  ///< in a model with sliding-window layers only those have RoPE
  bool rope_in_dense : 1;    ///< except layers before the expert layers
  bool no_rope : 1;          ///< no layer has RoPE
  bool head_of_rope : 1;     ///< default head size: rope.dimension_count
  bool finetuned_rope : 1;   ///< rope.scaling.finetuned = false turns RoPE off everywhere

  // Sliding-window layers.
  /// The last layer of each period sees the session's window; the others slide. 0: no sliding period, so that a window in
  /// the file applies to all layers.
  uint32_t sliding_period = 0;
  uint32_t sliding_window = 0;   ///< default window; 0: see sliding_is_optional
  bool sliding_is_optional : 1;  ///< without a window in the file, no layer slides; else an error
  bool full_first : 1;          ///< the first layer of a period does not slide, instead of the last
  bool pattern_required : 1;    ///< the file must mark the sliding layers
  bool all_slide : 1;           ///< every attention layer slides, with the window of the file
  uint32_t sliding_layers = 0;  ///< only models with this layer count slide; 0: all
  bool ignores_pattern : 1;     ///< ignore a list of flags in the file
  bool sliding_main_rope : 1;   ///< sliding-window layers share the scaling of RoPE
  double sliding_rope_theta = 0;  ///< default RoPE base of sliding layers

  bool shared_memories : 1;  ///< attention.shared_kv_layers: this many last layers have no KV cache
  bool sliding_head : 1;     ///< separate head size of sliding-window layers (.._swa)
  bool value_norm : 1;       ///< LayerKind::value_norm
  bool layer_inputs : 1;     ///< embedding_length_per_layer_input is read

  // Mixtures of experts.
  bool experts : 1;            ///< expert_count and expert_used_count are read
  bool experts_optional : 1;   ///< and may be missing or 0: no experts
  bool expert_width_own : 1;   ///< expert_feed_forward_length; else feed_forward_length
  bool expert_gating : 1;      ///< expert_gating_func is read; else a softmax
  bool expert_normalised : 1;  ///< Experts::normalised
  bool leading_dense : 1;      ///< leading_dense_block_count is read
  bool shared_expert : 1;      ///< expert_shared_feed_forward_length is read
  /// expert_shared_count, expert_weights_scale and expert_weights_norm are read; expert_gating_func may be missing.
  bool expert_weight_keys : 1;
  bool expert_sigmoid : 1;    ///< default of expert_gating_func
  bool expert_by_tensor : 1;  ///< layers with a router have experts
  bool expert_interval : 1;   ///< read interleave_moe_layer_step or moe_every_n_layers
  bool shared_by_width : 1;   ///< default of expert_shared_feed_forward_length: feed_forward_length
  bool shared_times : 1;      ///< multiply that width by expert_shared_count
  bool shared_gate : 1;       ///< Experts::shared_gate
  bool shared_mean : 1;       ///< average the experts and the dense feed-forward
  bool routed_first : 1;      ///< Experts::routed_first
  bool expert_own_input : 1;  ///< Experts::own_input
  bool norms_summed : 1;      ///< LayerKind::norms_summed, in layers with experts
  bool expert_latent : 1;     ///< moe_latent_size is read
  bool value_experts : 1;     ///< attention.value_expert_count is read

  bool latent_attention : 1;  ///< latent attention: attention.kv_lora_rank is read

  // States.
  StateRule state = StateRule::kNone;
  StateLayers state_layers = StateLayers::kNone;
  bool state_norm_optional : 1;  ///< StateShape::normed depends on the tensor
  bool state_in_order : 1;       ///< adjacent heads share a key; else keys alternate
  bool gated : 1;                ///< LayerKind::gate_beside
  RopeSections rope_sections = RopeSections::kNone;
  bool no_trained_context : 1;  ///< a context_length of 2^20 means "not stated"
  bool extra_layers : 1;  ///< nextn_predict_layers last layers (multi-token prediction) are not run

  bool hybrid_keys : 1;  ///< files state sizes of state-space layers that the model lacks

  // Multipliers.
  bool scales : 1;              ///< embedding_scale, residual_scale, logit_scale are read
  bool logit_factor : 1;        ///< logit_scale is required, and multiplies
  bool scale_defaults : 1;      ///< and missing ones are 12, 1.4 / sqrt(n_layers), n_embd / 256
  bool no_attention_scale : 1;  ///< attention.scale is not read
  bool unit_scores : 1;         ///< scores are not scaled
  uint32_t width_scaled_layers =
      0;                       ///< at this layer count, scale scores by 1 / sqrt(n_embd / n_heads)
  double score_cap = 0;        ///< default of attn_logit_softcapping
  double logit_cap = 0;        ///< default of final_logit_softcapping
  bool query_temperature : 1;  ///< attention.temperature_scale is read
  bool yarn_log_multiplier : 1;  ///< rope.scaling.yarn_log_multiplier is read
  bool rope_alpha : 1;           ///< rope.scaling.alpha is read

  bool feed_forward_by_tensor : 1;  ///< n_ff comes from ffn_gate; the key is unreliable

  bool predicts : 1;  ///< the extra layer is a prediction block that this build can run
  /// A draft model: its layers read the KV cache of a target model. It cannot be loaded alone.
  bool drafts : 1;
};

/// Group `index` of all groups.
TensorRules ruleGroup(uint32_t index);
struct Architecture {
  const char* name;  ///< general.architecture
  RopePairing rope_pairing;
  uint8_t n_tensors = 0;
  uint8_t tensors[kMaxRuleGroups] = {};  ///< indices of groups
  Traits traits;
};

/// Numbers that all architectures read.
const CountKey* countKeys(uint32_t* count);
/// Names of optional tensors to ignore (as in TensorRule, ends with null): derived values that old
/// converters wrote.
const char* const* ignoredTensors();

/// Null for an unknown architecture.
const Architecture* findArchitecture(const GgufString& name);
uint32_t architectureCount();
const Architecture& architectureAt(uint32_t index);

/// Calls visit(rule) for all tensors of an architecture.
template <typename Visit>
void forEachRule(const Architecture& architecture, const Visit& visit) {
  for (uint32_t g = 0; g < architecture.n_tensors; ++g) {
    for (TensorRules rule = ruleGroup(architecture.tensors[g]); rule->name != nullptr; ++rule) {
      visit(*rule);
    }
  }
  for (TensorRules rule = kTextHead; rule->name != nullptr; ++rule) {
    visit(*rule);
  }
}

// Names the missing parts for a model, so that a refusal says more than "unknown".

/// Reports that an architecture does not run, its known requirements, and the supported ones.
Status refuseArchitecture(const GgufString& name, const Log& log);

/// The purpose of a tensor without a rule, to follow its name: "is a bias".
const char* unknownTensorPurpose(const GgufString& name);

/// Refuses keys of a known architecture that would change its arithmetic.
Status refuseVariants(const GgufFile& file, const Architecture& architecture, const Log& log);

}  // namespace oriel_internal
