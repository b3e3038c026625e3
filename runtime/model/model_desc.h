// What a model is: its shape as plain numbers, and the tensors its architecture expects.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/limits.h"
#include "base/log.h"
#include "gguf/gguf.h"
#include "model/layer.h"

namespace oriel_internal {

/// Whose vectors a file says become that of a text: the numbers of its "pooling_type".
enum class FilePooling : uint8_t { kNone, kMean, kFirst, kLast, kRank, kUnknown };

/// Which values of a head a rotation pairs up.
enum class RopePairing : uint32_t {
  kInterleaved,  ///< (2i, 2i + 1): llama as converted for GGUF
  kHalves,       ///< (i, i + dims / 2)
};

/// How positions turn into angles: pair i of a head turns by theta^(-2i / dims) / divisors[i] a token, and what was
/// turned is multiplied by `magnitude`. Every known scaling of RoPE is one of these.
struct RopeTable {
  RopeTable() { std::fill(divisors, divisors + kMaxHeadDim / 2, 1.0); }
  uint32_t dims = 0;  ///< the first values of a head: even, <= head_dim of the layers that use it
  double theta = 10000.0;
  double magnitude = 1.0;
  double divisors[kMaxHeadDim / 2];  ///< positive and finite; a pair with a huge one never turns
};

enum class RopeScaling : uint32_t {
  kNone,
  kLinear,    ///< positions divided by a factor
  kFactors,   ///< a divisor for each pair, from a tensor (Llama 3)
  kYarn,      ///< Peng et al. 2023: interpolates slow pairs only
  kLongrope,  ///< Ding et al. 2024: two sets of divisors, for short and for long contexts
};
const char* ropeScalingName(
    RopeScaling scaling);  ///< "none", "linear", "llama3", "yarn", "longrope"

/// Kinds of layers that one model may have.
constexpr uint32_t kMaxLayerKinds = 16;

/// A model that guesses what another, its target, writes next: layers with queries only, which read memories of the
/// target. Their tensors are in the target's TensorIndex as those of layers behind the target's; those of the whole
/// model are the first such layer's.
struct DraftDesc {
  static constexpr uint32_t kMaxLayers = 16;
  struct Layer {
    uint32_t n_heads = 0;
    uint32_t n_ff = 0;
    uint32_t memory_of = 0;  ///< layer of the target
  };
  uint32_t n_layers = 0;  ///< 0: there is none
  uint32_t n_embd = 0;
  float rms_eps = 0;
  Layer layers[kMaxLayers];
};

struct Adapters;  // model/adapters.h

/// Shape of a decoder-only model. Everything the budgeter and the plan need, nothing from the device. All
/// counts are within base/limits.h once readModelDesc has returned kOk.
struct ModelDesc {
  const char* architecture = "";  ///< NUL-terminated constant
  uint32_t n_layers = 0;
  uint32_t extra_layers = 0;  ///< behind them in the file, for predicting further tokens: not run
  uint32_t n_embd = 0;
  uint32_t n_vocab = 0;
  uint32_t context_train = 0;  ///< tokens; 0: not stated
  // The largest of all layers.
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t n_ff = 0;
  /// Values of an input that every layer has of its own, made of the token and of its embedding (Gemma 4); 0: none.
  uint32_t layer_input = 0;

  LayerKind kinds[kMaxLayerKinds];
  uint32_t n_kinds = 0;
  Layer layers[kMaxLayers];
  LayerView views[kMaxViews];  ///< the first is the session's
  uint32_t n_views = 1;

  RopePairing rope_pairing = RopePairing::kInterleaved;
  RopeScaling rope_scaling = RopeScaling::kNone;
  RopeTable ropes[kMaxRopes];
  /// Used instead of the main one when a cache may hold more than so many tokens; 0: never.
  uint32_t rope_short_tokens = 0;
  RopeTable rope_long;
  /// Queries at position p of the cache are multiplied by 1 + temperature * ln(floor(p / tokens) + 1); 0: not.
  double query_temperature = 0;
  double temperature_tokens = 0;

  /// Every layer was trained to see at most so many tokens; 0: as many as the context has.
  uint32_t window_train = 0;

  float rms_eps = 1e-5f;
  // Branches that are added to the residual stream times s (Granite's residual_scale) need no multiplication: the
  // stream is kept divided by s, for which embeddings are divided by s and the epsilon of norms that read the
  // stream by s * s; norms undo it.
  float residual_eps = 1e-5f;  ///< of norms that read the residual stream
  float embedding_scale = 1.0f;
  float logit_scale = 1.0f;  ///< logits are multiplied by it
  float logit_cap = 0;       ///< and then soft-capped, as in SoftCapPush; 0: not
  bool tied_output = false;  ///< the output matrix is the embedding
  bool layer_norms = false;  ///< norms take the mean off first
  bool bare_norms = false;   ///< and have no weights
  uint32_t norm_groups =
      1;  ///< norms of the residual stream divide so many equal parts each by its own
  bool post_norms = false;  ///< of models that may have norms behind branches: it has them
  float qkv_limit = 0;      ///< queries, keys and values are cut at so much either way; 0: not
  bool learned_positions = false;  ///< a vector for each position is added to embeddings
  /// The layers are so many passes through the first n_layers / loops, each with memories of its own.
  uint32_t loops = 1;
  bool loop_norms = false;  ///< the last norm is applied between passes, too
  FilePooling pooling = FilePooling::kNone;
  /// It reads whole texts, each for its vector or its score, and writes none: no cache is kept between steps.
  bool encoder = false;
  bool causal = false;       ///< of an encoder: a token sees those before it, not those behind
  bool fused_gates = false;  ///< ffn_up has gates, too
  uint32_t token_types = 0;  ///< of tokens of an encoder; 0: they have none
  uint32_t labels = 0;       ///< scores that a text has; 0: a vector
  uint32_t dense = 0;  ///< values between two matrices that a vector goes through; 0: it does not
  uint8_t rank_activation = kTanh;
  /// Values that a text becomes.
  uint32_t textCols() const { return labels != 0 ? labels : n_embd; }
  /// Values of a row of outputs: those, or logits.
  uint32_t outputCols() const { return encoder ? textCols() : n_vocab; }
  uint32_t target_embd = 0;  ///< of a model that guesses: n_embd of the one that it guesses for
  DraftDesc draft;           ///< what guesses for this one
  const Adapters* adapters = nullptr;  ///< loaded with it; null: none

  const LayerKind& kind(uint32_t layer) const { return kinds[layers[layer].kind]; }
  bool ownsMemory(uint32_t layer) const {
    return layers[layer].memory_of == layer && kind(layer).mixer != Mixer::kNone;
  }
  const LayerView& viewOf(uint32_t layer) const { return views[kind(layer).view]; }
  bool slides(uint32_t layer) const { return viewOf(layer).kind == ViewKind::kSliding; }
  /// Layers at the end that have no memory of their own: tokens whose logits nobody wants need not pass them.
  uint32_t layersWithoutMemory() const {
    uint32_t count = 0;
    while (count < n_layers && !ownsMemory(n_layers - 1 - count)) {
      ++count;
    }
    return count;
  }
  /// Whether some layer keeps a state; whether some layer remembers tokens.
  bool keepsStates() const { return hasKind(&LayerKind::keepsState); }
  bool attends() const { return hasKind(&LayerKind::attends); }
  bool convolves() const { return hasKind(&LayerKind::convolves); }
  /// Whether some layer's queries or keys are rotated by the table.
  bool usesRope(uint8_t rope) const {
    for (uint32_t k = 0; k < n_kinds; ++k) {
      if (kinds[k].attends() && kinds[k].rope == rope) {
        return true;
      }
    }
    return false;
  }
  /// The main table in a cache of so many tokens.
  const RopeTable& mainRope(uint64_t visible_tokens) const {
    return rope_short_tokens != 0 && visible_tokens > rope_short_tokens ? rope_long
                                                                        : ropes[kMainRope];
  }
  /// Tokens that a query was trained to see; 0: not stated.
  uint32_t visibleTrain() const {
    return window_train != 0 && (context_train == 0 || window_train < context_train)
               ? window_train
               : context_train;
  }

 private:
  bool hasKind(bool (LayerKind::*is)() const) const {
    return std::any_of(kinds, kinds + n_kinds,
                       [is](const LayerKind& kind) { return (kind.*is)(); });
  }
};

/// The kind with these fields, added if there is none yet; UINT8_MAX when there is no room for it.
uint8_t addKind(const LayerKind& kind, ModelDesc* desc);
/// Likewise of views.
uint8_t addView(const LayerView& view, ModelDesc* desc);
/// Layers that see the session's window see `parts[layer]` kWindowParts of it from now on, those that read another's
/// memory as much as that one; 0: all. False where that makes more kinds or views than there is room for: the
/// description is of no use then.
bool shareWindow(const uint8_t* parts, ModelDesc* desc);
/// Makes every layer one of the same kind, with the description's largest numbers, that sees the session's window.
void makeLayersAlike(ModelDesc* desc);
/// Fails where a layer reads the memory of a later layer, or of one of another shape.
Status checkMemories(const ModelDesc& desc, const Log& log);

enum class TensorRole : uint8_t {
  kTokenEmbedding,       // [n_vocab][n_embd]
  kOutputNorm,           // [n_embd]
  kOutput,               // [n_vocab][n_embd]; absent when tied
  kAttentionNorm,        // [n_embd]
  kQuery,                // [n_heads * head_dim][n_embd]
  kKey,                  // [n_kv_heads * head_dim][n_embd]
  kValue,                // [n_kv_heads * head_dim][n_embd]
  kAttentionOut,         // [n_embd][n_heads * head_dim]
  kFeedForwardNorm,      // [n_embd]
  kGate,                 // [n_ff][n_embd]
  kUp,                   // [n_ff][n_embd]
  kDown,                 // [n_embd][n_ff]
  kQueryBias,            // [n_heads * head_dim]
  kKeyBias,              // [n_kv_heads * head_dim]
  kValueBias,            // [n_kv_heads * head_dim]
  kQkv,                  // [(n_heads + 2 n_kv_heads) * head_dim][n_embd]: query, key, value stacked
  kGateUp,               // [2 n_ff][n_embd]: gate, up stacked
  kQueryNorm,            // [head_dim], of every head
  kKeyNorm,              // [head_dim]
  kAttentionPostNorm,    // [n_embd], of what attention adds to the residual
  kFeedForwardPostNorm,  // [n_embd]
  kRopeFactors,          // [pairs of the main RoPE table]
  kRopeFactorsLong,      // [pairs of the main RoPE table]
  kRopeFactorsShort,     // [pairs of the main RoPE table]
  kConvIn,               // [3 n_embd][n_embd]
  kConvTaps,             // [n_embd][conv_taps]
  kConvOut,              // [n_embd][n_embd]
  kRouter,               // [experts][n_embd]
  kRouterBias,           // [experts], added to scores for choosing
  kExpertGate,           // [experts][expert n_ff][n_embd]
  kExpertUp,             // [experts][expert n_ff][n_embd]
  kExpertDown,           // [experts][n_embd][expert n_ff]
  kLayerScale,           // [1], what the residual is multiplied by behind the layer
  kLayerInputEmbedding,  // [n_vocab][n_layers * layer_input]
  kLayerInputProjection,  // [n_layers * layer_input][n_embd]
  kLayerInputNorm,        // [layer_input], of every layer's
  kLayerInputGate,        // [layer_input][n_embd]
  kLayerInputOut,         // [n_embd][layer_input]
  kLayerInputPostNorm,    // [n_embd]
  kStateIn,               // [StateShape: channels, or gates, channels and heads (Mamba-2)][n_embd]
  kStateGate,             // [value cols][n_embd]
  kStateFactor,           // [heads][n_embd]
  kStateDecay,            // [heads][n_embd]
  kStateTaps,             // [channels][conv_taps]
  kStateTapsBias,         // [channels]
  kStateSteps,            // [heads], added to what decays are made of
  kStateRates,            // [heads], what those are multiplied by: negative
  kStateSkip,             // [heads], how much of a value goes by the state
  kStateNorm,             // [value_dim], or [key_heads][value cols / key_heads] (Mamba-2)
  kStateOut,              // [n_embd][value cols]
  kQueryLatent,           // [query_latent_dim][n_embd]
  kQueryLatentNorm,       // [query_latent_dim]
  kQueryOfLatent,         // [n_heads * head_dim][query_latent_dim]
  kLatentAndKey,          // [latent_dim + rope_dim][n_embd]
  kLatentNorm,            // [latent_dim]
  kLatentKeys,            // [n_heads][latent_dim][head_dim - rope_dim]
  kLatentValues,          // [n_heads][value_dim][latent_dim]
  kLatentKeysValues,      // [n_heads][head_dim - rope_dim + value_dim][latent_dim]
  kDraftIn,               // [n_embd][2 target_embd]
  kDraftOut,              // [target_embd][n_embd]
  kAttentionGate,         // [n_heads or attended cols][n_embd]
  kScoreBeside,           // [n_heads], one more score of each head
  kAttentionOutBias,      // [n_embd]
  kQkvBias,               // [(n_heads + 2 n_kv_heads) * head_dim]
  kUpBias,                // [n_ff]
  kDownBias,              // [n_embd]
  kAttentionNormBias,     // [n_embd]
  kFeedForwardNormBias,   // [n_embd]
  kOutputNormBias,        // [n_embd]
  kOutputBias,            // [n_vocab]
  kPositionEmbedding,     // [context_train][n_embd]
  kSharedGate,            // [1][n_embd], of the feed-forward beside experts
  kRouterAddend,          // [experts], of the router's product
  kRouterNorm,            // [n_embd], of the router's own input
  kExpertGateUp,          // [experts][2 expert n_ff][n_embd]: gate, up stacked
  kExpertGateBias,        // [experts][expert n_ff]
  kExpertUpBias,          // [experts][expert n_ff]
  kExpertDownBias,        // [experts][n_embd]
  kExpertNorm,            // [n_embd], of the experts' own input
  kExpertPostNorm,        // [n_embd], of what experts give
  kDensePostNorm,         // [n_embd], of what the feed-forward beside them gives
  kExpertLatentIn,        // [latent][n_embd]
  kExpertLatentOut,       // [n_embd][latent]
  kAttentionSubNorm,      // [n_heads * head_dim], of what the matrix behind attention reads
  kFeedForwardSubNorm,    // [n_ff], of what the last matrix of the feed-forward reads
  kValueRouter,           // [value experts][n_embd]
  kValueRouterBias,       // [value experts], added to scores for choosing
  kValueExperts,          // [value experts][n_kv_heads * head_dim][n_embd]
  kStateFactorDecay,   // [2 heads][n_embd]: of each key head its heads' factors, then their decays
  kEmbeddingNorm,      // [n_embd]
  kEmbeddingNormBias,  // [n_embd]
  kTokenTypes,         // [token_types][n_embd]
  kAttentionStreamNorm,      // [n_embd], of the residual stream behind attention
  kAttentionStreamNormBias,  // [n_embd]
  kSecondStreamNorm,         // [n_embd], of that and what was there before
  kSecondStreamNormBias,     // [n_embd]
  kLayerStreamNorm,          // [n_embd], of the residual stream behind the layer
  kLayerStreamNormBias,      // [n_embd]
  kQueryNormBias,            // [n_heads * head_dim]
  kKeyNormBias,              // [n_kv_heads * head_dim]
  kRank,                     // [n_embd][n_embd]
  kRankBias,                 // [n_embd]
  kRankNorm,                 // [n_embd]
  kLabels,                   // [labels][n_embd]
  kLabelsBias,               // [labels]
  kDenseIn,                  // [dense][n_embd]
  kDenseOut,                 // [n_embd][dense]
  kDirection,                // [n_embd], of a control vector
};
constexpr uint32_t kMatrixRoles = 108;
/// That of what a matrix's products are multiplied by: one number, or one for each expert.
constexpr TensorRole scaleOf(TensorRole matrix) {
  return static_cast<TensorRole>(static_cast<uint32_t>(matrix) + kMatrixRoles);
}
constexpr uint32_t kTensorRoles = 2 * kMatrixRoles;
/// Of no tensor.
constexpr TensorRole kNoRole = static_cast<TensorRole>(kTensorRoles);

class TensorIndex;  // model/tensor_index.h

/// A matrix of this type of the file has kernels.
bool runsAsMatrix(uint32_t tensor_type);

/// Reads and checks the hyperparameters and every tensor the architecture's table expects: present,
/// of the right shape, of a type this build can run. `file` must already be validated (GgufFile::open).
/// Also refuses tensors the table does not know (they would be silently ignored otherwise), except
/// ones every llama file may carry and that carry no information (see the .cpp). `tensors`, which is empty, gets
/// them.
Status readModelDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors);
/// The same of a model that guesses for another, as a description of its own.
Status readDraftDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors);

}  // namespace oriel_internal
