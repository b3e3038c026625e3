#include "model/architecture.h"

#include <initializer_list>

#include "base/checked.h"

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

// Groups of tensors. Gemma norm weights in files already include the added 1.
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
// Gemma 4: a layer without a value matrix uses its keys as values. A layer that reads another layer's cache has no keys
// of its own.
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
// Gate and up matrices, separate or in one tensor.
constexpr TensorRule kExperts[] = {
    {TensorRole::kRouter, "ffn_gate_inp.weight", Where::kExpertLayers, Extent::kExperts, Extent::kEmbedding, true},
    {TensorRole::kExpertGate, "ffn_gate_exps.weight", Where::kExpertLayers, Extent::kExpertFeedForward, Extent::kEmbedding, true, Extent::kExperts, TensorRole::kExpertGateUp},
    {TensorRole::kExpertUp, "ffn_up_exps.weight", Where::kExpertLayers, Extent::kExpertFeedForward, Extent::kEmbedding, true, Extent::kExperts, TensorRole::kExpertGateUp},
    {TensorRole::kExpertGateUp, "ffn_gate_up_exps.weight", Where::kExpertLayers, Extent::kExpertGateUp, Extent::kEmbedding, false, Extent::kExperts},
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
// The final norm is stored under the embedding's name.
constexpr TensorRule kLfm2Head[] = {
    {TensorRole::kOutputNorm, "token_embd_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kOutput, "output.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kShortConv[] = {
    {TensorRole::kConvIn, "shortconv.in_proj.weight", Where::kConvLayers, Extent::kThreeEmbeddings, Extent::kEmbedding, true},
    {TensorRole::kConvTaps, "shortconv.conv.weight", Where::kConvLayers, Extent::kEmbedding, Extent::kConvTaps, true},
    {TensorRole::kConvOut, "shortconv.out_proj.weight", Where::kConvLayers, Extent::kEmbedding, Extent::kEmbedding, true},
    kEnd};
// DeepSeek-V2 and its successors. A separate key matrix has the layout for multiplying queries. In a joint tensor with
// values it has the opposite layout.
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
// Inputs of a state after the input projection. Mamba-2's steps, rates and skip have one value per head.
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
// The same, with factors and decays in one matrix.
constexpr TensorRule kDeltaJoined[] = {
    {TensorRole::kStateIn, "attn_qkv.weight", Where::kStateLayers, Extent::kStateChannels, Extent::kEmbedding, true},
    {TensorRole::kStateGate, "attn_gate.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kStateFactorDecay, "ssm_ba.weight", Where::kStateLayers, Extent::kTwoStateHeads, Extent::kEmbedding, true},
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
// Kimi's delta attention: queries, keys, values and their taps are separate.
constexpr TensorRule kKda[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kKey, "attn_k.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kValue, "attn_v.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kStateGate, "ssm_g_a.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kStateFactor, "ssm_beta.weight", Where::kStateLayers, Extent::kStateHeads, Extent::kEmbedding, true},
    {TensorRole::kStateDecay, "ssm_f_a.weight", Where::kStateLayers, Extent::kStateValues, Extent::kEmbedding, true},
    {TensorRole::kStateTaps, "ssm_conv1d_q.weight", Where::kStateLayers, Extent::kOne, Extent::kStateTaps, true, Extent::kStateValues},
    {TensorRole::kStateKeyTaps, "ssm_conv1d_k.weight", Where::kStateLayers, Extent::kOne, Extent::kStateTaps, true, Extent::kStateValues},
    {TensorRole::kStateValueTaps, "ssm_conv1d_v.weight", Where::kStateLayers, Extent::kOne, Extent::kStateTaps, true, Extent::kStateValues},
    {TensorRole::kStateSteps, "ssm_dt.bias", Where::kStateLayers, Extent::kOne, Extent::kStateValues, true},
    {TensorRole::kStateRates, "ssm_a", Where::kStateLayers, Extent::kStateHeads, Extent::kOne, true},
    {TensorRole::kStateNorm, "ssm_norm.weight", Where::kStateLayers, Extent::kOne, Extent::kStateValue, true},
    {TensorRole::kStateOut, "attn_output.weight", Where::kStateLayers, Extent::kEmbedding, Extent::kStateValues, true},
    kEnd};
constexpr TensorRule kGatedAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kAttentionLayers, Extent::kGatedQueries, Extent::kEmbedding, true},
    {TensorRole::kKey, "attn_k.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kValue, "attn_v.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    kEnd};
// Queries, keys and values in separate matrices or in one, with or without biases.
constexpr TensorRule kAnyAttention[] = {
    {TensorRole::kQuery, "attn_q.weight", Where::kAttentionLayers, Extent::kQueries, Extent::kEmbedding, true, Extent::kOne, TensorRole::kQkv},
    {TensorRole::kKey, "attn_k.weight", Where::kAttentionLayers, Extent::kKeyValues, Extent::kEmbedding, true, Extent::kOne, TensorRole::kQkv},
    {TensorRole::kValue, "attn_v.weight", Where::kWholeValueLayers, Extent::kKeyValues, Extent::kEmbedding, true, Extent::kOne, TensorRole::kQkv},
    {TensorRole::kQkv, "attn_qkv.weight", Where::kWholeValueLayers, Extent::kQkv, Extent::kEmbedding, false},
    {TensorRole::kAttentionOut, "attn_output.weight", Where::kAttentionLayers, Extent::kEmbedding, Extent::kQueries, true},
    {TensorRole::kQueryBias, "attn_q.bias", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, false},
    {TensorRole::kKeyBias, "attn_k.bias", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, false},
    {TensorRole::kValueBias, "attn_v.bias", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, false},
    {TensorRole::kQkvBias, "attn_qkv.bias", Where::kAttentionLayers, Extent::kOne, Extent::kQkv, false},
    {TensorRole::kAttentionOutBias, "attn_output.bias", Where::kAttentionLayers, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kGate[] = {
    {TensorRole::kAttentionGate, "attn_gate.weight", Where::kGatedLayers, Extent::kGates, Extent::kEmbedding, true},
    kEnd};
// Required in every model.
constexpr TensorRule kNeededGate[] = {
    {TensorRole::kAttentionGate, "attn_gate.weight", Where::kAttentionLayers, Extent::kGates, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kScoresBeside[] = {
    {TensorRole::kScoreBeside, "attn_sinks.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHeads, true},
    kEnd};
constexpr TensorRule kOptionalHeadNorms[] = {
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHead, false},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kHead, false},
    kEnd};
// Separate weights per head.
constexpr TensorRule kOwnHeadNorms[] = {
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kHeads, Extent::kHead, false, Extent::kOne, kNoRole, true},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kAttentionLayers, Extent::kKeyHeads, Extent::kHead, false, Extent::kOne, kNoRole, true},
    kEnd};
constexpr TensorRule kOptionalPostNorms[] = {
    {TensorRole::kAttentionPostNorm, "post_attention_norm.weight", Where::kPostNormLayers, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardPostNorm, "post_ffw_norm.weight", Where::kPostNormLayers, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kNeededRopeFactors[] = {
    {TensorRole::kRopeFactors, "rope_freqs.weight", Where::kModel, Extent::kOne, Extent::kRopePairs, true},
    kEnd};
// Layer norms, with or without biases. A branch without a norm uses the norm of the other branch.
constexpr TensorRule kLayerNorms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kAttentionNormBias, "attn_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kFeedForwardNormBias, "ffn_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kBothLayerNorms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kAttentionNormBias, "attn_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNormBias, "ffn_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
// If there are two norms, attention has the second.
constexpr TensorRule kFalconLayerNorms[] = {
    {TensorRole::kFeedForwardNorm, "attn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNormBias, "attn_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kAttentionNorm, "attn_norm_2.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kAttentionNormBias, "attn_norm_2.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kHeadBiases[] = {
    {TensorRole::kOutputNormBias, "output_norm.bias", Where::kModel, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kOutputBias, "output.bias", Where::kModel, Extent::kOne, Extent::kVocabulary, false},
    kEnd};
constexpr TensorRule kBareHead[] = {
    {TensorRole::kOutput, "output.weight", Where::kModel, Extent::kVocabulary, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kPositions[] = {
    {TensorRole::kPositionEmbedding, "position_embd.weight", Where::kModel, Extent::kContext, Extent::kEmbedding, true},
    kEnd};
// Without gates.
constexpr TensorRule kPlainFeedForward[] = {
    {TensorRole::kUp, "ffn_up.weight", Where::kDenseLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kDenseLayers, Extent::kEmbedding, Extent::kFeedForward, true},
    {TensorRole::kUpBias, "ffn_up.bias", Where::kDenseLayers, Extent::kOne, Extent::kFeedForward, false},
    {TensorRole::kDownBias, "ffn_down.bias", Where::kDenseLayers, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kFusedFeedForward[] = {
    {TensorRole::kGateUp, "ffn_up.weight", Where::kEveryLayer, Extent::kGateUp, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kFeedForward, true},
    kEnd};
constexpr TensorRule kSubNorms[] = {
    {TensorRole::kAttentionSubNorm, "attn_sub_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, true},
    {TensorRole::kFeedForwardSubNorm, "ffn_sub_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kFeedForward, true},
    kEnd};
constexpr TensorRule kPlainExperts[] = {
    {TensorRole::kRouter, "ffn_gate_inp.weight", Where::kExpertLayers, Extent::kExperts, Extent::kEmbedding, true},
    {TensorRole::kExpertUp, "ffn_up_exps.weight", Where::kExpertLayers, Extent::kExpertFeedForward, Extent::kExpertInput, true, Extent::kExperts},
    {TensorRole::kExpertDown, "ffn_down_exps.weight", Where::kExpertLayers, Extent::kExpertInput, Extent::kExpertFeedForward, true, Extent::kExperts},
    {TensorRole::kUp, "ffn_up_shexp.weight", Where::kSharedLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down_shexp.weight", Where::kSharedLayers, Extent::kEmbedding, Extent::kFeedForward, true},
    {TensorRole::kExpertLatentIn, "ffn_latent_down.weight", Where::kExpertLayers, Extent::kExpertLatent, Extent::kEmbedding, false},
    {TensorRole::kExpertLatentOut, "ffn_latent_up.weight", Where::kExpertLayers, Extent::kEmbedding, Extent::kExpertLatent, false},
    kEnd};
constexpr TensorRule kExpertBiases[] = {
    {TensorRole::kRouterAddend, "ffn_gate_inp.bias", Where::kExpertLayers, Extent::kOne, Extent::kExperts, true},
    {TensorRole::kExpertGateBias, "ffn_gate_exps.bias", Where::kExpertLayers, Extent::kExperts, Extent::kExpertFeedForward, true, Extent::kOne, kNoRole, true},
    {TensorRole::kExpertUpBias, "ffn_up_exps.bias", Where::kExpertLayers, Extent::kExperts, Extent::kExpertFeedForward, true, Extent::kOne, kNoRole, true},
    {TensorRole::kExpertDownBias, "ffn_down_exps.bias", Where::kExpertLayers, Extent::kExperts, Extent::kEmbedding, true, Extent::kOne, kNoRole, true},
    kEnd};
constexpr TensorRule kShortExpertBias[] = {
    {TensorRole::kRouterBias, "exp_probs_b", Where::kExpertLayers, Extent::kOne, Extent::kExperts, false},
    {TensorRole::kRouterBias, "exp_probs_b.bias", Where::kExpertLayers, Extent::kOne, Extent::kExperts, false},
    kEnd};
constexpr TensorRule kSharedGate[] = {
    {TensorRole::kSharedGate, "ffn_gate_inp_shexp.weight", Where::kSharedLayers, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
// Gemma 4: router, experts and dense feed-forward have separate norms.
constexpr TensorRule kExpertsBeside[] = {
    {TensorRole::kRouterNorm, "ffn_gate_inp.scale", Where::kExpertLayers, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kExpertNorm, "pre_ffw_norm_2.weight", Where::kExpertLayers, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kExpertPostNorm, "post_ffw_norm_2.weight", Where::kExpertLayers, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kDensePostNorm, "post_ffw_norm_1.weight", Where::kExpertLayers, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kValueExperts[] = {
    {TensorRole::kValueRouter, "attn_v_gate.weight", Where::kValueExpertLayers, Extent::kValueExperts, Extent::kEmbedding, true},
    {TensorRole::kValueRouterBias, "attn_v_gate.bias", Where::kValueExpertLayers, Extent::kOne, Extent::kValueExperts, false},
    {TensorRole::kValueExperts, "attn_v_exps.weight", Where::kValueExpertLayers, Extent::kKeyValues, Extent::kEmbedding, true, Extent::kValueExperts},
    kEnd};
// A different name of the attention post-norm.
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
// Encoders: norm of the embedding, token types, and norms of the residual stream after each
// branch.
constexpr TensorRule kEmbeddingNorm[] = {
    {TensorRole::kEmbeddingNorm, "token_embd_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kEmbeddingNormBias, "token_embd_norm.bias", Where::kModel, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kTokenTypes[] = {
    {TensorRole::kTokenTypes, "token_types.weight", Where::kModel, Extent::kTokenTypes, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kStreamNorms[] = {
    {TensorRole::kAttentionStreamNorm, "attn_output_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kAttentionStreamNormBias, "attn_output_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kSecondStreamNorm, "attn_norm_2.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kSecondStreamNormBias, "attn_norm_2.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kLayerStreamNorm, "layer_output_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kLayerStreamNormBias, "layer_output_norm.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kOptionalRowNorms[] = {
    {TensorRole::kQueryNorm, "attn_q_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, false},
    {TensorRole::kQueryNormBias, "attn_q_norm.bias", Where::kAttentionLayers, Extent::kOne, Extent::kQueries, false},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, false},
    {TensorRole::kKeyNormBias, "attn_k_norm.bias", Where::kAttentionLayers, Extent::kOne, Extent::kKeyValues, false},
    kEnd};
constexpr TensorRule kLaterNorms[] = {
    {TensorRole::kAttentionNorm, "attn_norm.weight", Where::kLaterLayers, Extent::kOne, Extent::kEmbedding, true},
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kEitherFeedForward[] = {
    {TensorRole::kGate, "ffn_gate.weight", Where::kSplitGateLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kUp, "ffn_up.weight", Where::kSplitGateLayers, Extent::kFeedForward, Extent::kEmbedding, true},
    {TensorRole::kGateUp, "ffn_up.weight", Where::kFusedGateLayers, Extent::kGateUp, Extent::kEmbedding, true},
    {TensorRole::kDown, "ffn_down.weight", Where::kEveryLayer, Extent::kEmbedding, Extent::kFeedForward, true},
    {TensorRole::kDownBias, "ffn_down.bias", Where::kEveryLayer, Extent::kOne, Extent::kEmbedding, false},
    kEnd};
constexpr TensorRule kEncoderHead[] = {
    {TensorRole::kOutputNorm, "enc.output_norm.weight", Where::kModel, Extent::kOne, Extent::kEmbedding, true},
    kEnd};
constexpr TensorRule kTextHeadRules[] = {
    {TensorRole::kRank, "cls.weight", Where::kRank, Extent::kEmbedding, Extent::kEmbedding, false},
    {TensorRole::kRankBias, "cls.bias", Where::kRank, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kRankNorm, "cls.norm.weight", Where::kRank, Extent::kOne, Extent::kEmbedding, false},
    {TensorRole::kLabels, "cls.output.weight", Where::kRank, Extent::kLabels, Extent::kEmbedding, true},
    {TensorRole::kLabelsBias, "cls.output.bias", Where::kRank, Extent::kOne, Extent::kLabels, false},
    {TensorRole::kDenseIn, "dense_2.weight", Where::kDenseHead, Extent::kDense, Extent::kEmbedding, true},
    {TensorRole::kDenseOut, "dense_3.weight", Where::kDenseHead, Extent::kEmbedding, Extent::kDense, true},
    kEnd};
// clang-format on

constexpr TensorRules kGroups[] = {kEmbedding,
                                   kHead,
                                   kUntiedHead,
                                   kRopeFactors,
                                   kPreNorms,
                                   kPostNorms,
                                   kAttention,
                                   kBiases,
                                   kHeadNorms,
                                   kRowNorms,
                                   kFeedForward,
                                   kSharedAttention,
                                   kDraftAttention,
                                   kDraftEnds,
                                   kLayerInputs,
                                   kDenseFeedForward,
                                   kExperts,
                                   kExpertBias,
                                   kSharedExpert,
                                   kFused,
                                   kLfm2Head,
                                   kShortConv,
                                   kLatentAttention,
                                   kTwoRopeFactors,
                                   kDelta,
                                   kDeltaJoined,
                                   kMamba2,
                                   kKda,
                                   kGatedAttention,
                                   kAnyAttention,
                                   kGate,
                                   kNeededGate,
                                   kScoresBeside,
                                   kOptionalHeadNorms,
                                   kOwnHeadNorms,
                                   kOptionalPostNorms,
                                   kNeededRopeFactors,
                                   kLayerNorms,
                                   kBothLayerNorms,
                                   kFalconLayerNorms,
                                   kHeadBiases,
                                   kBareHead,
                                   kPositions,
                                   kPlainFeedForward,
                                   kFusedFeedForward,
                                   kSubNorms,
                                   kPlainExperts,
                                   kExpertBiases,
                                   kShortExpertBias,
                                   kSharedGate,
                                   kExpertsBeside,
                                   kValueExperts,
                                   kQwen35Norms,
                                   kFalconNorms,
                                   kMixerNorm,
                                   kEmbeddingNorm,
                                   kTokenTypes,
                                   kStreamNorms,
                                   kOptionalRowNorms,
                                   kLaterNorms,
                                   kEitherFeedForward,
                                   kEncoderHead};

template <typename Change>
constexpr Traits traits(const Change& change) {
  Traits made = {};
  change(&made);
  return made;
}

constexpr Traits kPlain = {};
constexpr Traits kGemma3Traits = traits([](Traits* t) {
  t->activation = kGelu;
  t->scaled_embedding = true;
  t->sliding_period = 6;
  t->sliding_rope_theta = 10000.0;
  t->width_scaled_layers = 62;  // 27B; other sizes scale scores by the head size
});
constexpr Traits kGemma2Traits = traits([](Traits* t) {
  t->activation = kGelu;
  t->scaled_embedding = true;
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
  t->no_attention_scale = true;
});
constexpr Traits kHunyuanTraits =
    traits([](Traits* t) { t->norms_after_rope = t->rope_alpha = true; });
constexpr Traits kMistral3Traits = traits([](Traits* t) {
  t->query_temperature = t->yarn_log_multiplier = true;
  t->no_attention_scale = true;
});
constexpr Traits kExaone4Traits = traits([](Traits* t) {
  t->sliding_period = 4;
  t->sliding_window = 4096;
  t->sliding_layers = 64;  // 32B; smaller models ignore the window in their files
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
  t->activation = kGelu;
  t->scaled_embedding = t->unit_scores = t->value_norm = true;
  t->sliding_period = 5;
  t->sliding_rope_theta = 10000.0;
  t->sliding_head = t->shared_memories = t->layer_inputs = true;
  t->logit_cap = 30;
  t->experts = t->experts_optional = t->expert_width_own = t->expert_normalised = true;
  t->expert_by_tensor = t->expert_own_input = t->norms_summed = true;
});
constexpr Traits kGemma4AssistantTraits = traits([](Traits* t) {
  t->activation = kGelu;
  t->unit_scores = t->drafts = true;
  t->sliding_period = 5;
  t->sliding_rope_theta = 10000.0;
  t->sliding_head = true;
  t->shared_memories = true;
});
constexpr Traits kQwen35Traits = traits([](Traits* t) {
  t->state = StateRule::kDelta;
  t->state_layers = StateLayers::kMost;
  t->gated = t->extra_layers = t->predicts = true;
  t->rope_sections = RopeSections::kInterleaved;
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
  t->no_attention_scale = true;
});
// Common traits of mixtures of experts with a shared expert. The keys of the weights are optional.
template <typename Change>
constexpr Traits mixture(const Change& change) {
  Traits made = {};
  made.experts = made.expert_width_own = true;
  change(&made);
  return made;
}
constexpr Traits kSparkTraits = traits([](Traits* t) {
  t->activation = kGeluErf;
  t->gate = kGateSigmoid;
  t->sliding_period = 4;
  t->sliding_rope_theta = 10000.0;
  t->pattern_required = true;
});
constexpr Traits kLfm3Traits = traits([](Traits* t) {
  t->gate = kGateSigmoid;
  t->sliding_period = 4;
  t->sliding_rope_theta = 10000.0;
  t->pattern_required = t->optional_post_norms = true;
});
constexpr Traits kQwen35MoeTraits = mixture([](Traits* t) {
  t->state = StateRule::kDelta;
  t->state_layers = StateLayers::kMost;
  t->gated = t->extra_layers = t->predicts = true;
  t->rope_sections = RopeSections::kInterleaved;
  t->expert_normalised = t->shared_expert = t->shared_by_width = t->shared_gate = true;
});
constexpr Traits kQwen3NextTraits = mixture([](Traits* t) {
  t->state = StateRule::kDelta;
  t->state_layers = StateLayers::kMost;
  t->state_in_order = t->gated = t->extra_layers = true;
  t->expert_normalised = t->shared_expert = t->shared_by_width = t->shared_gate = true;
});
constexpr Traits kGptOssTraits = mixture([](Traits* t) {
  t->activation = kClampedSilu;
  t->expert_normalised = true;  // equals a softmax over the selected
  t->sliding_period = 2;
  t->sliding_main_rope = true;
});
constexpr Traits kNemotronHTraits = traits([](Traits* t) {
  t->activation = kReluSquared;
  t->plain = t->no_rope = t->no_trained_context = t->extra_layers = true;
  t->state = StateRule::kMamba2;
  t->state_layers = StateLayers::kBranches;
});
constexpr Traits kNemotronHMoeTraits = mixture([](Traits* t) {
  *t = kNemotronHTraits;
  t->experts = t->expert_width_own = t->expert_by_tensor = t->expert_latent = true;
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = t->shared_expert = true;
});
constexpr Traits kAfmoeTraits = mixture([](Traits* t) {
  t->gate = kGateSigmoid;
  t->scaled_embedding = true;
  t->sliding_period = 4;
  t->sliding_main_rope = t->no_rope_in_full = true;
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->leading_dense = t->shared_expert = t->norms_summed = true;
});
constexpr Traits kBailingMoeTraits = mixture([](Traits* t) {
  t->head_of_rope = t->expert_weight_keys = t->expert_gating = true;
  t->leading_dense = true;
});
constexpr Traits kBailingMoe2Traits = mixture([](Traits* t) {
  t->expert_gating = t->expert_weight_keys = t->leading_dense = true;
  t->shared_expert = t->shared_times = t->extra_layers = true;
});
constexpr Traits kBailingMoe3Traits = mixture([](Traits* t) {
  *t = kBailingMoe2Traits;
  t->latent_attention = true;
  t->gate = kGateSigmoid;
  t->state = StateRule::kKda;
  t->state_layers = StateLayers::kWithoutHeads;
});
constexpr Traits kErnieMoeTraits = mixture([](Traits* t) {
  t->expert_normalised = t->leading_dense = t->shared_expert = t->expert_interval = true;
});
constexpr Traits kHunyuanMoeTraits = traits([](Traits* t) {
  t->norms_after_rope = t->rope_alpha = true;
  t->experts = t->expert_normalised = t->shared_expert = true;
});
constexpr Traits kQwen2MoeTraits =
    mixture([](Traits* t) { t->shared_expert = t->shared_by_width = t->shared_gate = true; });
constexpr Traits kDeepSeekTraits =
    mixture([](Traits* t) { t->expert_gating = t->expert_weight_keys = t->leading_dense = true; });
constexpr Traits kGlm4MoeTraits = mixture([](Traits* t) {
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->leading_dense = t->extra_layers = true;
});
constexpr Traits kSmallThinkerTraits = mixture([](Traits* t) {
  t->activation = kRelu;
  t->sliding_period = 4;
  t->full_first = t->sliding_is_optional = t->sliding_main_rope = t->no_rope_in_full = true;
  t->expert_gating = t->expert_normalised = t->routed_first = true;
});
constexpr Traits kMellumTraits = mixture([](Traits* t) {
  t->sliding_period = 4;
  t->sliding_is_optional = t->expert_normalised = true;
});
constexpr Traits kLagunaTraits = mixture([](Traits* t) {
  t->gate = kGateSoftplus;
  t->sliding_period = 4;
  t->full_first = t->sliding_is_optional = true;
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->leading_dense = t->shared_expert = true;
});
constexpr Traits kHyV3Traits = mixture([](Traits* t) {
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->expert_by_tensor = t->shared_expert = t->extra_layers = true;
});
constexpr Traits kK2HorizonTraits = mixture([](Traits* t) {
  t->gate = kGateSoftplus2;
  t->grouped_norms = t->head_norms = true;
  t->experts_optional = t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->leading_dense = t->shared_expert = t->value_experts = t->extra_layers = true;
});
constexpr Traits kCohere2Traits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->parallel = t->logit_factor = true;
  t->sliding_period = 4;
  t->sliding_main_rope = t->no_rope_in_full = true;
});
constexpr Traits kCohere2MoeTraits = mixture([](Traits* t) {
  t->norms = NormRule::kByKey;
  t->parallel = t->logit_factor = true;
  t->sliding_period = 4;
  t->full_first = t->pattern_required = true;
  t->sliding_main_rope = t->no_rope_in_full = t->rope_in_dense = true;
  t->expert_gating = t->expert_weight_keys = t->expert_sigmoid = true;
  t->leading_dense = t->shared_expert = t->shared_mean = t->extra_layers = true;
});
constexpr Traits kGemmaTraits = traits([](Traits* t) {
  t->activation = kGelu;
  t->scaled_embedding = true;
});
constexpr Traits kReluSquaredTraits = traits([](Traits* t) {
  t->activation = kReluSquared;
  t->plain = true;
});
constexpr Traits kPlmTraits = traits([](Traits* t) {
  t->activation = kReluSquared;
  t->plain = t->latent_attention = true;
});
constexpr Traits kApertusTraits = traits([](Traits* t) {
  t->activation = kXielu;
  t->plain = true;
});
constexpr Traits kQwen2VlTraits =
    traits([](Traits* t) { t->rope_sections = RopeSections::kContiguous; });
constexpr Traits kQwen3VlTraits =
    traits([](Traits* t) { t->rope_sections = RopeSections::kInterleaved; });
constexpr Traits kQwen3VlMoeTraits = mixture([](Traits* t) {
  t->expert_normalised = true;
  t->rope_sections = RopeSections::kInterleaved;
});
constexpr Traits kGraniteSwaTraits = traits([](Traits* t) {
  t->scales = t->hybrid_keys = true;
  t->sliding_period = 4;
  t->pattern_required = t->sliding_main_rope = true;
});
constexpr Traits kNanbeigeTraits = traits([](Traits* t) { t->loops = true; });
constexpr Traits kMainCoderTraits = traits([](Traits* t) { t->norms_after_rope = true; });
// Layer norms.
constexpr Traits kStableLmTraits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->head_norms = t->parallel_without_norm = true;
});
constexpr Traits kGpt2Traits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kGelu;
  t->plain = t->no_rope = t->learned_positions = true;
});
constexpr Traits kStarCoder2Traits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kGelu;
  t->plain = true;
});
constexpr Traits kPhi2Traits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kGelu;
  t->plain = t->parallel = true;
});
constexpr Traits kGptNeoxTraits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kGeluErf;
  t->plain = t->parallel_by_key = true;
});
constexpr Traits kFalconTraits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kGeluErf;
  t->plain = t->parallel = true;
});
constexpr Traits kNemotronTraits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->activation = kReluSquared;
  t->plain = true;
});
constexpr Traits kOlmoTraits = traits([](Traits* t) {
  t->norms = NormRule::kLayer;
  t->bare_norms = t->qkv_limit = true;
});
constexpr Traits kSmolLm3Traits = traits([](Traits* t) { t->no_rope_period = 4; });

// Encoders.
template <typename Change>
constexpr Traits encoder(const Change& change) {
  Traits made = {};
  made.encoder = true;
  made.norms = NormRule::kLayer;
  made.activation = kGeluErf;
  made.rank_pooling = FilePooling::kFirst;
  change(&made);
  return made;
}
constexpr Traits kBertTraits =
    encoder([](Traits* t) { t->plain = t->no_rope = t->learned_positions = true; });
constexpr Traits kNomicBertTraits = encoder([](Traits* t) { t->activation = kSilu; });
constexpr Traits kNomicBertMoeTraits =
    encoder([](Traits* t) { t->plain = t->experts = t->expert_interval = true; });
constexpr Traits kJinaBert2Traits =
    encoder([](Traits* t) { t->no_rope = t->alibi = t->row_norms = t->fused_gates = true; });
constexpr Traits kJinaBert3Traits = encoder([](Traits* t) { t->plain = true; });
constexpr Traits kModernBertTraits = encoder([](Traits* t) {
  t->sliding_period = 3;
  t->full_first = true;
  t->sliding_rope_theta = 10000.0;
  t->rank_activation = kGeluErf;
  t->rank_pooling = FilePooling::kMean;
});
constexpr Traits kRmsEncoderTraits = encoder([](Traits* t) {
  t->norms = NormRule::kRms;
  t->activation = kSilu;
});
constexpr Traits kGemmaEmbeddingTraits = encoder([](Traits* t) {
  t->norms = NormRule::kRms;
  t->activation = kGelu;
  t->scaled_embedding = true;
  t->sliding_period = 6;
  t->sliding_rope_theta = 10000.0;
});

constexpr Architecture row(const char* name, RopePairing pairing,
                           std::initializer_list<TensorRules> groups, const Traits& traits) {
  Architecture made = {name, pairing, 0, {}, traits};
  for (const TensorRules group : groups) {
    while (kGroups[made.tensors[made.n_tensors]] != group) {
      ++made.tensors[made.n_tensors];
    }
    ++made.n_tensors;
  }
  return made;
}

// clang-format off
constexpr Architecture kArchitectures[] = {
    // Llama 1 to 3, Mistral, SmolLM 1 and 2, TinyLlama, and most models converted to the llama format.
    row("llama", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kPlain),
    row("qwen2", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kBiases, kFeedForward}, kPlain),
    row("qwen3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kFeedForward}, kPlain),
    row("gemma3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAttention, kHeadNorms, kFeedForward}, kGemma3Traits),
    row("smollm3", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kSmolLm3Traits),
    row("granite", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kGraniteTraits),
    row("minicpm", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kTwoRopeFactors, kPreNorms, kAttention, kFeedForward}, kMiniCpmTraits),
    row("ernie4_5", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kPlain),
    row("hunyuan-dense", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kFeedForward}, kHunyuanTraits),
    row("mistral3", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kFeedForward}, kMistral3Traits),
    row("exaone4", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPostNorms, kAttention, kHeadNorms, kFeedForward}, kExaone4Traits),
    row("olmo2", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPostNorms, kAttention, kRowNorms, kFeedForward}, kOlmo2Traits),
    row("gemma2", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAttention, kFeedForward}, kGemma2Traits),
    // LFM2 and LFM2.5: layers without KV heads are short convolutions.
    row("lfm2", RopePairing::kHalves, {kEmbedding, kLfm2Head, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kShortConv, kFeedForward}, kLfm2Traits),
    row("lfm2moe", RopePairing::kHalves, {kEmbedding, kLfm2Head, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kShortConv, kDenseFeedForward, kExperts, kExpertBias}, kLfm2MoeTraits),
    row("granitemoe", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kExperts, kSharedExpert}, kGraniteMoeTraits),
    row("olmoe", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPreNorms, kAttention, kRowNorms, kExperts}, kOlmoeTraits),
    row("qwen3moe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kHeadNorms, kExperts}, kQwen3MoeTraits),
    row("gemma4", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kSharedAttention, kFeedForward, kLayerInputs, kExperts, kExpertsBeside}, kGemma4Traits),
    row("gemma4-assistant", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kDraftAttention, kFeedForward, kDraftEnds}, kGemma4AssistantTraits),
    // States: the gated delta rule; Mamba-2 between attention layers, in parallel with attention, and alone.
    row("qwen35", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kGatedAttention, kHeadNorms, kDelta, kFeedForward}, kQwen35Traits),
    row("granitehybrid", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAttention, kMamba2, kDenseFeedForward, kExperts, kSharedExpert}, kGraniteHybridTraits),
    row("falcon-h1", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kFalconNorms, kAttention, kMamba2, kFeedForward}, kFalconH1Traits),
    row("mamba2", RopePairing::kHalves, {kEmbedding, kHead, kMixerNorm, kMamba2}, kMamba2Traits),
    row("deepseek2", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kLatentAttention, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kDeepSeek2Traits),
    row("minicpm3", RopePairing::kHalves, {kEmbedding, kHead, kTwoRopeFactors, kPreNorms, kLatentAttention, kFeedForward}, kMiniCpm3Traits),
    row("phi3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kTwoRopeFactors, kPreNorms, kFused}, kPlain),
    row("lfm3", RopePairing::kHalves, {kEmbedding, kHead, kNeededRopeFactors, kPreNorms, kOptionalPostNorms, kAnyAttention, kNeededGate, kHeadNorms, kShortConv, kFeedForward}, kLfm3Traits),
    row("spark2_5", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kNeededGate, kFeedForward}, kSparkTraits),
    row("qwen35moe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kGatedAttention, kHeadNorms, kDelta, kExperts, kSharedExpert, kSharedGate}, kQwen35MoeTraits),
    row("qwen3next", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kGatedAttention, kHeadNorms, kDeltaJoined, kExperts, kSharedExpert, kSharedGate}, kQwen3NextTraits),
    row("gpt-oss", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kQwen35Norms, kAnyAttention, kScoresBeside, kExperts, kExpertBiases}, kGptOssTraits),
    row("nemotron_h", RopePairing::kHalves, {kEmbedding, kHead, kMixerNorm, kAnyAttention, kMamba2, kPlainFeedForward}, kNemotronHTraits),
    row("nemotron_h_moe", RopePairing::kHalves, {kEmbedding, kHead, kMixerNorm, kAnyAttention, kMamba2, kPlainFeedForward, kPlainExperts, kExpertBias}, kNemotronHMoeTraits),
    row("afmoe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAnyAttention, kNeededGate, kHeadNorms, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kAfmoeTraits),
    row("bailingmoe", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kBailingMoeTraits),
    row("bailingmoe2", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kBailingMoe2Traits),
    row("bailingmoe3", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kLatentAttention, kNeededGate, kKda, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kBailingMoe3Traits),
    row("ernie4_5-moe", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kErnieMoeTraits),
    row("hunyuan-moe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kExperts, kSharedExpert}, kHunyuanMoeTraits),
    row("qwen2moe", RopePairing::kHalves, {kEmbedding, kUntiedHead, kRopeFactors, kPreNorms, kAnyAttention, kExperts, kSharedExpert, kSharedGate}, kQwen2MoeTraits),
    row("deepseek", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kDenseFeedForward, kExperts, kSharedExpert}, kDeepSeekTraits),
    row("glm4moe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kAnyAttention, kOptionalHeadNorms, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kGlm4MoeTraits),
    row("smallthinker", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kExperts}, kSmallThinkerTraits),
    row("mellum", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kExperts}, kMellumTraits),
    row("laguna", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kNeededGate, kHeadNorms, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kLagunaTraits),
    row("hy_v3", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kDenseFeedForward, kExperts, kShortExpertBias, kSharedExpert}, kHyV3Traits),
    row("k2-horizon", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kValueExperts, kGate, kOwnHeadNorms, kDenseFeedForward, kExperts, kExpertBias, kSharedExpert}, kK2HorizonTraits),
    row("qwen3vlmoe", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kExperts}, kQwen3VlMoeTraits),
    row("cohere2", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kLayerNorms, kAnyAttention, kFeedForward}, kCohere2Traits),
    row("cohere2moe", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kLayerNorms, kAnyAttention, kDenseFeedForward, kExperts, kSharedExpert}, kCohere2MoeTraits),
    row("glm4", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAnyAttention, kFusedFeedForward}, kPlain),
    row("chatglm", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFusedFeedForward}, kPlain),
    row("seed_oss", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kQwen35Norms, kAnyAttention, kFeedForward}, kPlain),
    row("gemma", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kGemmaTraits),
    row("arcee", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kPlainFeedForward}, kReluSquaredTraits),
    row("apertus", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kPlainFeedForward}, kApertusTraits),
    row("exaone", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kPlain),
    row("internlm2", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kPlain),
    row("nanbeige", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kNanbeigeTraits),
    row("maincoder", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kFeedForward}, kMainCoderTraits),
    row("plm", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kLatentAttention, kPlainFeedForward}, kPlmTraits),
    row("qwen2vl", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kQwen2VlTraits),
    row("qwen3vl", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kHeadNorms, kFeedForward}, kQwen3VlTraits),
    row("granite_swa", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kScoresBeside, kFeedForward}, kGraniteSwaTraits),
    row("bitnet", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kSubNorms, kFeedForward}, kPlain),
    row("phi2", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kLayerNorms, kAnyAttention, kPlainFeedForward}, kPhi2Traits),
    row("gptneox", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kBothLayerNorms, kAnyAttention, kPlainFeedForward}, kGptNeoxTraits),
    row("gpt2", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kPositions, kBothLayerNorms, kAnyAttention, kPlainFeedForward}, kGpt2Traits),
    row("falcon", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kFalconLayerNorms, kAnyAttention, kPlainFeedForward}, kFalconTraits),
    row("starcoder2", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kBothLayerNorms, kAnyAttention, kPlainFeedForward}, kStarCoder2Traits),
    row("stablelm", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kLayerNorms, kAnyAttention, kOwnHeadNorms, kFeedForward}, kStableLmTraits),
    row("nemotron", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kBothLayerNorms, kAnyAttention, kPlainFeedForward}, kNemotronTraits),
    row("jais2", RopePairing::kHalves, {kEmbedding, kHead, kHeadBiases, kBothLayerNorms, kAnyAttention, kPlainFeedForward}, kNemotronTraits),
    // Encoders: a text becomes a vector or a score.
    row("bert", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kTokenTypes, kPositions, kAnyAttention, kStreamNorms, kPlainFeedForward}, kBertTraits),
    row("nomic-bert", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kTokenTypes, kAnyAttention, kStreamNorms, kFeedForward}, kNomicBertTraits),
    row("nomic-bert-moe", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kTokenTypes, kAnyAttention, kStreamNorms, kPlainFeedForward, kPlainExperts}, kNomicBertMoeTraits),
    row("jina-bert-v2", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kTokenTypes, kAnyAttention, kOptionalRowNorms, kStreamNorms, kEitherFeedForward}, kJinaBert2Traits),
    row("jina-bert-v3", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kTokenTypes, kAnyAttention, kStreamNorms, kPlainFeedForward}, kJinaBert3Traits),
    row("modern-bert", RopePairing::kHalves, {kEmbedding, kEmbeddingNorm, kHead, kLaterNorms, kAnyAttention, kFusedFeedForward}, kModernBertTraits),
    row("gemma-embedding", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kPostNorms, kAttention, kHeadNorms, kFeedForward}, kGemmaEmbeddingTraits),
    row("llama-embed", RopePairing::kInterleaved, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kRmsEncoderTraits),
    row("eurobert", RopePairing::kHalves, {kEmbedding, kHead, kRopeFactors, kPreNorms, kAnyAttention, kFeedForward}, kRmsEncoderTraits),
    row("neo-bert", RopePairing::kInterleaved, {kEmbedding, kEncoderHead, kPreNorms, kAnyAttention, kFusedFeedForward}, kRmsEncoderTraits),
    row("olmo", RopePairing::kInterleaved, {kEmbedding, kBareHead, kAnyAttention, kFeedForward}, kOlmoTraits),
};
// clang-format on

// The inverse frequencies of the rotation, which follow from rope.freq_base, and a table with which an assistant
// computes fewer logits.
constexpr const char* kIgnored[] = {"attn_rot_embd.weight", "masked_embd_centroids.weight",
                                    "masked_embd_ordering", "masked_embd_ordering.weight", nullptr};

}  // namespace

const TensorRules kTextHead = kTextHeadRules;

const CountKey* countKeys(uint32_t* count) {
  *count = sizeof(kCounts) / sizeof(kCounts[0]);
  return kCounts;
}

const char* const* ignoredTensors() { return kIgnored; }

TensorRules ruleGroup(uint32_t index) { return kGroups[index]; }

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
