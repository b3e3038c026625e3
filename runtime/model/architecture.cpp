#include "model/architecture.h"

#include "base/limits.h"

namespace oriel_internal {
namespace {

constexpr CountKey kCounts[] = {
    {"block_count", &ModelDesc::n_layers, 1, kMaxLayers, true},
    {"embedding_length", &ModelDesc::n_embd, 1, kMaxEmbedding, true},
    {"attention.key_length", &ModelDesc::head_dim, kMinHeadDim, kMaxLatentDim + kMaxLatentRopeDim,
     false},
    {"context_length", &ModelDesc::context_train, 0, UINT32_MAX, false},
    {"vocab_size", &ModelDesc::n_vocab, 1, kMaxVocabulary, false},
    {"embedding_length_out", &ModelDesc::target_embd, 0, kMaxEmbedding, false},
};

// Groups of tensors. Norm weights of the Gemmas come with the 1 that they add to them.
// clang-format off
constexpr TensorRule kEnd = {TensorRole::kTokenEmbedding, nullptr, Where::kModel, Extent::kOne, Extent::kOne, false};

constexpr TensorRule kEmbedding[] = {
    {TensorRole::kTokenEmbedding, "token_embd.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kHead[] = {
    {TensorRole::kOutputNorm, "output_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kOutput, "output.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kUntiedHead[] = {
    {TensorRole::kOutputNorm, "output_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kOutput, "output.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kRopeFactors[] = {
    {TensorRole::kRopeFactors, "rope_freqs.weight", Where::kModel, Extent::kOne, Extent::kRopePairs, false},
    kEnd};
constexpr TensorRule kPreNorms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kPostNorms[] = {
    {TensorRole::kAttentionPostNorm, "post_attention_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardPostNorm, "post_ffw_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kAttentionLayers, Extent::kQueries, Extent::kEmbedding, true},
    {TensorRole::kKey, "attn_k.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kValue, "attn_v.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    kEnd};
constexpr TensorRule kBiases[] = {
    {TensorRole::kQueryBias, "attn_q.bias", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, true},
    {TensorRole::kKeyBias, "attn_k.bias", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, true},
    {TensorRole::kValueBias, "attn_v.bias", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, true},
    kEnd};
constexpr TensorRule kHeadNorms[] = {
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHead, true},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHead, true},
    kEnd};
constexpr TensorRule kRowNorms[] = {
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, true},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, true},
    kEnd};
constexpr TensorRule kFeedForward[] = {
    {TensorRole::kGate, "ffn_gate.weight", Where::kEveryLayer, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kUp, "ffn_up.weight", Where::kEveryLayer, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kFeedForward, true},
    kEnd};
// Gemma 4: values are those of the keys where a layer has no matrix for them; only layers with a memory of their own
// have keys.
constexpr TensorRule kSharedAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kAttentionLayers, Extent::kQueries, Extent::kEmbedding, true},
    {TensorRole::kKey, "attn_k.weight", Where::kMemoryLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kValue, "attn_v.weight", Where::kMemoryLayers, Extent::kKeyValues, Extent::kEmbedding, false},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHead, true},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kMemoryLayers, Extent::kOne, Extent::kHead, true},
    {TensorRole::kLayerScale, "layer_output_scale.weight", Where::kEveryLayer, Extent::kOne, Extent::kOne, false},
    kEnd};
// Gemma 4's assistant has queries only.
constexpr TensorRule kDraftAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kEveryLayer, Extent::kQueries, Extent::kEmbedding, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kQueries, true},
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kHead, true},
    {TensorRole::kLayerScale, "layer_output_scale.weight", Where::kEveryLayer, Extent::kOne, Extent::kOne, true},
    kEnd};
constexpr TensorRule kDraftEnds[] = {
    {TensorRole::kDraftIn, "nextn.pre_projection.weight", Where::kModel, Extent::kEmbedding, Extent::kTargetTwice, true},
    {TensorRole::kDraftOut, "nextn.post_projection.weight", Where::kModel, Extent::kTarget, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kLayerInputs[] = {
    {TensorRole::kLayerInputEmbedding, "per_layer_token_embd.weight", Where::kModelLayerInputs, Extent::kVocabulary, Extent::kLayerInputs, true},
    {TensorRole::kLayerInputProjection, "per_layer_model_proj.weight", Where::kModelLayerInputs, Extent::kLayerInputs, Extent::kEmbedding, true},
    {TensorRole::kLayerInputNorm, "per_layer_proj_norm.weight", Where::kModelLayerInputs, Extent::kOne, Extent::kLayerInput, true},
    {TensorRole::kLayerInputGate, "inp_gate.weight", Where::kLayerInputs, Extent::kLayerInput, Extent::kEmbedding, true},
    {TensorRole::kLayerInputOut, "proj.weight", Where::kLayerInputs, Extent::kEmbedding, Extent::kLayerInput, true},
    {TensorRole::kLayerInputPostNorm, "post_norm.weight", Where::kLayerInputs, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kDenseFeedForward[] = {
    {TensorRole::kGate, "ffn_gate.weight", Where::kDenseLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kUp, "ffn_up.weight", Where::kDenseLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kDenseLayers, Extent::kEmbedding, Extent::kFeedForward, true},
    kEnd};
constexpr TensorRule kExperts[] = {
    {TensorRole::kRouter, "ffn_gate_inp.weight", Where::kExpertLayers, Extent::kExperts, Extent::kEmbedding, true},
    {TensorRole::kExpertGate, "ffn_gate_exps.weight", Where::kExpertLayers, Extent::kExpertFeedForward, Extent::kEmbedding, true, Extent::kExperts},
    {TensorRole::kExpertUp, "ffn_up_exps.weight", Where::kExpertLayers, Extent::kExpertFeedForward, Extent::kEmbedding, true, Extent::kExperts},
    {TensorRole::kExpertDown, "ffn_down_exps.weight", Where::kExpertLayers, Extent::kEmbedding, Extent::kExpertFeedForward, true, Extent::kExperts},
    kEnd};
constexpr TensorRule kExpertBias[] = {
    {TensorRole::kRouterBias, "exp_probs_b.bias", Where::kExpertLayers, Extent::kOne, Extent::kExperts, false},
    kEnd};
constexpr TensorRule kSharedExpert[] = {
    {TensorRole::kGate, "ffn_gate_shexp.weight", Where::kSharedLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kUp, "ffn_up_shexp.weight", Where::kSharedLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down_shexp.weight", Where::kSharedLayers, Extent::kEmbedding, Extent::kFeedForward, true},
    kEnd};
constexpr TensorRule kFused[] = {
    {TensorRole::kQkv, "attn_qkv.weight", Where::kAttentionLayers, Extent::kQkv, Extent::kEmbedding, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    {TensorRole::kGateUp, "ffn_up.weight", Where::kEveryLayer, Extent::kGateUp, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kFeedForward, true},
    kEnd};
// The final norm has the embedding's name.
constexpr TensorRule kLfm2Head[] = {
    {TensorRole::kOutputNorm, "token_embd_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kOutput, "output.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kShortConv[] = {
    {TensorRole::kConvIn, "shortconv.in_proj.weight", Where::kConvLayers, Extent::kThreeEmbeddings, Extent::kEmbedding, true},
    {TensorRole::kConvTaps, "shortconv.conv.weight", Where::kConvLayers, Extent::kEmbedding, Extent::kConvTaps, true},
    {TensorRole::kConvOut, "shortconv.out_proj.weight", Where::kConvLayers, Extent::kEmbedding, Extent::kEmbedding, true},
    kEnd};
// DeepSeek-V2 and what follows it. Matrices of keys are laid out for queries, which are multiplied by them; where they
// share a tensor with those of values they are not.
constexpr TensorRule kLatentAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kQueryWholeLayers, Extent::kQueries, Extent::kEmbedding, true},
    {TensorRole::kQueryLatent, "attn_q_a.weight", Where::kQueryLatentLayers, Extent::kQueryLatent, Extent::kEmbedding, true},
    {TensorRole::kQueryLatentNorm, "attn_q_a_norm.weight", Where::kQueryLatentLayers, Extent::kOne, Extent::kQueryLatent, true},
    {TensorRole::kQueryOfLatent, "attn_q_b.weight", Where::kQueryLatentLayers, Extent::kQueries, Extent::kQueryLatent, true},
    {TensorRole::kLatentAndKey, "attn_kv_a_mqa.weight", Where::kAttentionLayers, Extent::kLatentAndKey, Extent::kEmbedding, true},
    {TensorRole::kLatentNorm, "attn_kv_a_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kLatent, true},
    {TensorRole::kLatentKeys, "attn_k_b.weight", Where::kSplitLatentLayers, Extent::kLatent, Extent::kPlainHead, true, Extent::kHeads},
    {TensorRole::kLatentValues, "attn_v_b.weight", Where::kSplitLatentLayers, Extent::kValueHead, Extent::kLatent, true, Extent::kHeads},
    {TensorRole::kLatentKeysValues, "attn_kv_b.weight", Where::kJoinedLatentLayers, Extent::kPlainAndValueHeads, Extent::kLatent, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kValueHeads, true},
    kEnd};
constexpr TensorRule kTwoRopeFactors[] = {
    {TensorRole::kRopeFactorsLong, "rope_factors_long.weight", Where::kModel, Extent::kOne, Extent::kRopePairs, false},
    {TensorRole::kRopeFactorsShort, "rope_factors_short.weight", Where::kModel, Extent::kOne, Extent::kRopePairs, false},
    kEnd};
// What states are made of, behind their input; Mamba-2's steps, rates and skip have one value a head.
constexpr TensorRule kDelta[] = {
    {TensorRole::kStateIn, "attn_qkv.weight", Where::kStateLayers, Extent::kStateChannels, Extent::kEmbedding, true},
    {TensorRole::kStateGate, "attn_gate.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kStateFactor, "ssm_beta.weight", Where::kStateLayers, Extent::kStateHeads, Extent::kEmbedding, true},
    {TensorRole::kStateDecay, "ssm_alpha.weight", Where::kStateLayers, Extent::kStateHeads, Extent::kEmbedding, true},
    {TensorRole::kStateTaps, "ssm_conv1d.weight", Where::kStateLayers, Extent::kStateChannels, Extent::kStateTaps, true},
    {TensorRole::kStateSteps, "ssm_dt.bias", Where::kStateLayers, Extent::kOne, Extent::kStateHeads, true},
    {TensorRole::kStateRates, "ssm_a", Where::kStateLayers, Extent::kOne, Extent::kStateHeads, true},
    {TensorRole::kStateNorm, "ssm_norm.weight", Where::kStateLayers, Extent::kOne, Extent::kStateValue, true},
    {TensorRole::kStateOut, "ssm_out.weight", Where::kStateLayers, Extent::kEmbedding, Extent::kStateValues, true},
    kEnd};
constexpr TensorRule kMamba2[] = {
    {TensorRole::kStateIn, "ssm_in.weight", Where::kStateLayers, Extent::kStateInputs, Extent::kEmbedding, true},
    {TensorRole::kStateTaps, "ssm_conv1d.weight", Where::kStateLayers, Extent::kStateChannels, Extent::kStateTaps, true},
    {TensorRole::kStateTapsBias, "ssm_conv1d.bias", Where::kStateLayers, Extent::kOne, Extent::kStateChannels, false},
    {TensorRole::kStateSteps, "ssm_dt.bias", Where::kStateLayers, Extent::kOne, Extent::kStateHeads, true},
    {TensorRole::kStateRates, "ssm_a", Where::kStateLayers, Extent::kStateHeads, Extent::kOne, true},
    {TensorRole::kStateSkip, "ssm_d", Where::kStateLayers, Extent::kStateHeads, Extent::kOne, true},
    {TensorRole::kStateNorm, "ssm_norm.weight", Where::kNormedStateLayers, Extent::kStateKeyHeads, Extent::kStateGroup, true},
    {TensorRole::kStateOut, "ssm_out.weight", Where::kStateLayers, Extent::kEmbedding, Extent::kStateValues, true},
    kEnd};
constexpr TensorRule kGatedAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kAttentionLayers, Extent::kGatedQueries, Extent::kEmbedding, true},
    {TensorRole::kKey, "attn_k.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kValue, "attn_v.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    kEnd};
// The name that others give to a norm behind attention.
constexpr TensorRule kQwen35Norms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNorm, "post_attention_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kFalconNorms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNorm, "ffn_norm", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kMixerNorm[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
// clang-format on

template <typename Change>
constexpr Traits traits(const Change& change) {
  Traits made;
  change(&made);
  return made;
}

constexpr Traits kPlain;
constexpr Traits kGemma3Traits = traits([](Traits* t) {
  t->gelu = t->scaled_embedding = true;
  t->sliding_period = 6;
  t->sliding_rope_theta = 10000.0;
  t->width_scaled_layers = 62;  // 27B; all others have scores scaled by the head as usual
});
constexpr Traits kGemma2Traits = traits([](Traits* t) {
  t->gelu = t->scaled_embedding = true;
  t->sliding_period = 2;
  t->sliding_window = 4096;
  t->ignores_pattern = true;
  t->sliding_main_rope = true;
  t->width_scaled_layers = 46;  // 27B
  t->score_cap = 50;
  t->logit_cap = 30;
});
constexpr Traits kGraniteTraits = traits([](Traits* t) {
  t->scales = t->finetuned_rope = true;
  t->hybrid_keys = true;  // dense models are published under the hybrids' class
});
constexpr Traits kMiniCpmTraits = traits([](Traits* t) {
  t->scales = t->scale_defaults = true;
  t->attention_scale = false;
});
constexpr Traits kHunyuanTraits =
    traits([](Traits* t) { t->norms_after_rope = t->rope_alpha = true; });
constexpr Traits kMistral3Traits = traits([](Traits* t) {
  t->query_temperature = t->yarn_log_multiplier = true;
  t->attention_scale = false;
});
constexpr Traits kExaone4Traits = traits([](Traits* t) {
  t->sliding_period = 4;
  t->sliding_window = 4096;
  t->sliding_layers = 64;  // 32B; a window in a smaller model's file says nothing
  t->ignores_pattern = true;
  t->sliding_main_rope = t->no_rope_in_full = true;
});
constexpr Traits kOlmo2Traits = traits([](Traits* t) {
  t->row_norms = true;
  t->sliding_period = 4;  // OLMo 3
  t->sliding_is_optional = t->ignores_pattern = true;
});
constexpr Traits kLfm2Traits = traits([](Traits* t) {
  t->feed_forward_by_tensor = true;
  t->all_slide = t->sliding_is_optional = t->sliding_main_rope = true;
});
constexpr Traits kLfm2MoeTraits = traits([](Traits* t) {
  t->experts = t->expert_width_own = t->expert_gating = t->expert_normalised = true;
  t->leading_dense = true;
});
constexpr Traits kGraniteMoeTraits = traits([](Traits* t) {
  t->scales = t->hybrid_keys = true;
  t->experts = t->expert_normalised = t->shared_expert = true;
});
constexpr Traits kOlmoeTraits = traits([](Traits* t) { t->row_norms = t->experts = true; });
constexpr Traits kQwen3MoeTraits =
    traits([](Traits* t) { t->experts = t->expert_width_own = t->expert_normalised = true; });
constexpr Traits kGemma4Traits = traits([](Traits* t) {
  t->gelu = t->scaled_embedding = t->unit_scores = t->value_norm = true;
  t->sliding_period = 5;
  t->sliding_rope_theta = 10000.0;
  t->sliding_head = t->shared_memories = t->layer_inputs = true;
  t->logit_cap = 30;
});
constexpr Traits kGemma4AssistantTraits = traits([](Traits* t) {
  t->gelu = t->unit_scores = t->drafts = true;
  t->sliding_period = 5;
  t->sliding_rope_theta = 10000.0;
  t->sliding_head = true;
  t->shared_memories = true;
});
constexpr Traits kQwen35Traits = traits([](Traits* t) {
  t->state = StateRule::kDelta;
  t->state_layers = StateLayers::kMost;
  t->gated = t->rope_sections = t->extra_layers = true;
});
constexpr Traits kGraniteHybridTraits = traits([](Traits* t) {
  t->state = StateRule::kMamba2;
  t->state_layers = StateLayers::kWithoutHeads;
  t->scales = t->finetuned_rope = t->no_trained_context = true;
  t->experts = t->experts_optional = t->expert_normalised = t->shared_expert = true;
});
constexpr Traits kFalconH1Traits = traits([](Traits* t) {
  t->state = StateRule::kMamba2;
  t->state_layers = StateLayers::kAllBeside;
  t->state_norm_optional = true;
});
constexpr Traits kMamba2Traits = traits([](Traits* t) {
  t->state = StateRule::kMamba2;
  t->state_layers = StateLayers::kAll;
  t->no_trained_context = true;
});
constexpr Traits kDeepSeek2Traits = traits([](Traits* t) {
  t->latent_attention = t->yarn_log_multiplier = true;
  t->experts = t->expert_width_own = t->expert_gating = t->expert_weight_keys = true;
  t->leading_dense = true;
});
constexpr Traits kMiniCpm3Traits = traits([](Traits* t) {
  t->latent_attention = t->scale_defaults = true;
  t->attention_scale = false;
});
constexpr Traits kSmolLm3Traits = traits([](Traits* t) { t->no_rope_period = 4; });

// clang-format off
constexpr Architecture kArchitectures[] = {
    // Llama 1 to 3, Mistral, SmolLM 1 and 2, TinyLlama, and most that were converted to look like them.
    {"llama", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kPlain},
    {"qwen2", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kBiases, kFeedForward}, kPlain},
    {"qwen3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kFeedForward}, kPlain},
    {"gemma3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAttention, kHeadNorms, kFeedForward}, kGemma3Traits},
    {"smollm3", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kSmolLm3Traits},
    {"granite", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kGraniteTraits},
    {"minicpm", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kTwoRopeFactors, kPreNorms, kAttention, kFeedForward}, kMiniCpmTraits},
    {"ernie4_5", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kPlain},
    {"hunyuan-dense", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kFeedForward}, kHunyuanTraits},
    {"mistral3", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kMistral3Traits},
    {"exaone4", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPostNorms, kAttention, kHeadNorms, kFeedForward}, kExaone4Traits},
    {"olmo2", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPostNorms, kAttention, kRowNorms, kFeedForward}, kOlmo2Traits},
    {"gemma2", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAttention, kFeedForward}, kGemma2Traits},
    // LFM2 and LFM2.5: layers without heads of keys are short convolutions.
    {"lfm2", RopePairing::kHalves, {kEmbedding, kLfm2Head, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kShortConv, kFeedForward}, kLfm2Traits},
    {"lfm2moe", RopePairing::kHalves, {kEmbedding, kLfm2Head, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kShortConv, kDenseFeedForward, kExperts, kExpertBias}, kLfm2MoeTraits},
    {"granitemoe", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kExperts, kSharedExpert}, kGraniteMoeTraits},
    {"olmoe", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPreNorms, kAttention, kRowNorms, kExperts}, kOlmoeTraits},
    {"qwen3moe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kExperts}, kQwen3MoeTraits},
    {"gemma4", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kSharedAttention, kFeedForward, kLayerInputs}, kGemma4Traits},
    {"gemma4-assistant", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kDraftAttention, kFeedForward, kDraftEnds}, kGemma4AssistantTraits},
    // States: the gated delta rule, Mamba-2 between attention layers, beside attention, and alone.
    {"qwen35", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kGatedAttention, kHeadNorms, kDelta, kFeedForward}, kQwen35Traits},
    {"granitehybrid", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kMamba2, kDenseFeedForward, kExperts, kSharedExpert}, kGraniteHybridTraits},
    {"falcon-h1", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kFalconNorms, kAttention, kMamba2, kFeedForward}, kFalconH1Traits},
    {"mamba2", RopePairing::kHalves, {kEmbedding, kHead, kMixerNorm, kMamba2}, kMamba2Traits},
    {"deepseek2", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kLatentAttention, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kDeepSeek2Traits},
    {"minicpm3", RopePairing::kHalves, {kEmbedding, kHead, kTwoRopeFactors, kPreNorms, kLatentAttention, kFeedForward}, kMiniCpm3Traits},
    {"phi3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kTwoRopeFactors, kPreNorms, kFused}, kPlain},
};
// clang-format on

// The rotation's inverse frequencies, which rope.freq_base gives anyway; and what makes an assistant look at fewer
// logits than there are.
constexpr const char* kIgnored[] = {"attn_rot_embd.weight", "masked_embd_centroids.weight",
                                    "masked_embd_ordering", "masked_embd_ordering.weight", nullptr};

}  // namespace

const CountKey* countKeys(uint32_t* count) {
  *count = sizeof(kCounts) / sizeof(kCounts[0]);
  return kCounts;
}

const char* const* ignoredTensors() { return kIgnored; }

uint32_t architectureCount() { return sizeof(kArchitectures) / sizeof(kArchitectures[0]); }

const Architecture& architectureAt(uint32_t index) { return kArchitectures[index]; }

const Architecture* findArchitecture(const GgufString& name) {
  for (const Architecture& found : kArchitectures) {
    if (name.equals(found.name)) {
      return &found;
    }
  }
  return nullptr;
}

}  // namespace oriel_internal
