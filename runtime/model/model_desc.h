// Description of a model: kinds of layers, sizes, and traits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "base/log.h"
#include "base/picture_words.h"
#include "gguf/gguf.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

// Layer descriptions: a model has a few kinds, and each layer has the index of its kind.

/// How a layer mixes in earlier tokens.
enum class Mixer : uint8_t {
  kAttention,  ///< softmax attention over keys and values
  kShortConv,  ///< a gated causal convolution over a few tokens (LFM2)
  kState,      ///< a recurrent state
  kParallel,   ///< attention and a state in parallel: same input, outputs added
  kNone,       ///< the layer is a feed-forward alone
};

/// Attention output without a gate (LayerKind::gate).
constexpr uint8_t kNoGate = UINT8_MAX;

/// How a state takes in a token (StateScanPush has the formulas).
enum class StateRule : uint8_t {
  kNone,
  kDelta,   ///< the gated delta rule (Qwen3.5)
  kMamba2,  ///< Mamba-2
  kKda,     ///< Kimi's delta attention: the gated delta rule with a decay for each value of a key
};

/// A recurrent state: a matrix [value_dim][key_dim] for each head, and the last inputs of a short convolution.
struct StateShape {
  StateRule rule = StateRule::kNone;
  bool normed = false;     ///< the output is normed; optional in Mamba-2
  bool in_order = false;   ///< kDelta: adjacent heads share a key; else keys alternate
  float least_decay = 0;   ///< kKda: its logarithm
  uint32_t conv_taps = 0;  ///< 2 .. kMaxConvTaps tokens, itself included
  uint32_t key_heads = 0;  ///< heads of keys and queries: divides heads
  uint32_t heads = 0;      ///< heads of values
  uint32_t key_dim = 0;    ///< 1 .. kMaxStateDim
  uint32_t value_dim = 0;  ///< 1 .. kMaxStateDim
  bool operator==(const StateShape& b) const {
    return rule == b.rule && normed == b.normed && in_order == b.in_order &&
           least_decay == b.least_decay && conv_taps == b.conv_taps && key_heads == b.key_heads &&
           heads == b.heads && key_dim == b.key_dim && value_dim == b.value_dim;
  }
  uint32_t keyCols() const { return key_heads * key_dim; }
  uint32_t valueCols() const { return heads * value_dim; }
  uint32_t decays() const { return rule == StateRule::kKda ? heads * key_dim : heads; }
  /// Channels of the convolution: queries, keys and values.
  uint32_t channels() const { return 2 * keyCols() + valueCols(); }
  uint32_t matrixValues() const { return valueCols() * key_dim; }
  uint32_t columnWords() const { return (conv_taps - 1) * channels(); }
};

constexpr uint8_t kNoRope = UINT8_MAX;
/// Indices of ModelDesc::ropes.
constexpr uint8_t kMainRope = 0;
constexpr uint8_t kSlidingRope = 1;
constexpr uint32_t kMaxRopes = 2;

/// A mixture of experts: a router selects the best few feed-forwards for each token.
struct Experts {
  uint32_t count = 0;  ///< 0: none; else 1 .. kMaxExperts
  uint32_t used = 0;   ///< experts per token: 1 .. kMaxExpertsUsed, at most count
  uint32_t n_ff = 0;
  bool sigmoid = false;       ///< scores are sigmoids; else a softmax over all experts
  bool normalised = false;    ///< divide the selected weights by their sum
  float scale = 1;            ///< factor of the selected weights
  uint32_t groups = 1;        ///< equal runs of experts: divides count
  uint32_t used_groups = 1;   ///< experts are selected from the best groups only
  bool routed_first = false;  ///< router input: the layer's input, before attention
  bool own_input = false;     ///< separate norms for router, experts and dense feed-forward
  bool shared_gate = false;   ///< multiply the dense feed-forward by a sigmoid
  float shared_scale = 1;     ///< constant factor of the dense feed-forward
  uint32_t latent = 0;        ///< experts work on a projection of this size; 0: on the input

  bool operator==(const Experts& b) const {
    return count == b.count && used == b.used && n_ff == b.n_ff && sigmoid == b.sigmoid &&
           normalised == b.normalised && scale == b.scale && groups == b.groups &&
           used_groups == b.used_groups && routed_first == b.routed_first &&
           own_input == b.own_input && shared_gate == b.shared_gate &&
           shared_scale == b.shared_scale && latent == b.latent;
  }
};

/// One kind of layer. All counts are within base/checked.h.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  uint8_t rope = kMainRope;       ///< index of ModelDesc::ropes; kNoRope: no rotation
  uint8_t view = 0;               ///< index of ModelDesc::views: visible tokens; kState: its state
  uint8_t activation = kSilu;     ///< of the feed-forward's gate
  bool plain = false;             ///< no gate: activate the feed-forward's one matrix
  bool parallel = false;          ///< the feed-forward reads the input of attention, not its result
  bool norms_summed = false;      ///< norm the sum of experts and dense feed-forward
  bool row_norms = false;         ///< query and key norms span all heads
  bool norms_after_rope = false;  ///< query and key norms come after RoPE
  bool value_norm = false;        ///< divide values by their root mean square, head by head
  bool head_norms = false;        ///< query and key norms have weights per head
  uint8_t gate = kNoGate;         ///< gate of the attention output: kGateSigmoid and so on
  bool gate_heads = false;        ///< a gate per head; else per value
  bool alibi = false;             ///< scores fall with the distance: AttentionPush::alibi_heads
  bool gate_beside = false;       ///< the query matrix also makes the gates; else a separate one
  uint8_t state_view = 0;         ///< kParallel: index of the view of its state
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;  ///< divides n_heads
  uint32_t head_dim = 0;    ///< even, kMinHeadDim .. kMaxHeadDim
  // Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024): the cache holds two vectors of each token. Every head
  // makes its key and its value from the first, the latent. All heads share the second, a rotated key; it is scored with
  // the last rope_dim of the head_dim values of a query.
  uint32_t latent_dim = 0;        ///< values of the latent; 0: ordinary keys and values
  uint32_t rope_dim = 0;          ///< values of the rotated key: even, below head_dim
  uint32_t value_dim = 0;         ///< values that a head makes from a latent
  uint32_t query_latent_dim = 0;  ///< size of the query latent; 0: queries come from the input
  bool joined_latent = false;     ///< the file stores key and value matrices in one tensor
  uint32_t n_ff = 0;              ///< of the dense feed-forward; 0: experts only
  Experts experts;
  Experts value_experts;      ///< make values; their n_ff is not used
  uint32_t conv_taps = 0;     ///< kShortConv: 1 .. kMaxConvTaps tokens, itself included
  uint32_t state_words = 0;   ///< state layers: size of one state in 32-bit words, as float32
  StateShape state;           ///< shape of the state
  float attention_scale = 0;  ///< factor of scores
  float soft_cap = 0;         ///< cap of scores, as in AttentionPush; 0: none

  bool attends() const { return mixer == Mixer::kAttention || mixer == Mixer::kParallel; }
  bool convolves() const { return mixer == Mixer::kShortConv; }
  bool keepsState() const { return mixer == Mixer::kState || mixer == Mixer::kParallel; }
  /// View of its state.
  uint8_t viewOfState() const { return mixer == Mixer::kParallel ? state_view : view; }
  uint32_t queryCols() const { return n_heads * head_dim; }
  uint32_t kvCols() const { return n_kv_heads * head_dim; }
  bool isLatent() const { return latent_dim != 0; }
  /// Values of a query head that are scored with the latent.
  uint32_t plainDim() const { return head_dim - rope_dim; }
  /// Values of a token in the cache.
  uint32_t latentCols() const { return latent_dim + rope_dim; }
  uint32_t gateCols() const { return gate == kNoGate ? 0 : gate_heads ? n_heads : attendedCols(); }
  /// Input and output columns of an expert; `n_embd`: columns of the layer.
  uint32_t expertCols(uint32_t n_embd) const {
    return experts.latent != 0 ? experts.latent : n_embd;
  }
  /// The branches need two vectors in addition to the residual stream and its normed copy.
  bool hasBranches() const {
    return parallel || (experts.count != 0 && (norms_summed || experts.latent != 0));
  }
  /// Columns of the attention output, the input of the output matrix.
  uint32_t attendedCols() const { return isLatent() ? n_heads * value_dim : queryCols(); }
};

struct Layer {
  uint8_t kind = 0;  ///< index of ModelDesc::kinds
  uint16_t memory_of =
      0;  ///< layer whose KV cache it reads: itself, or an earlier layer of equal shape
  float activation[4] = {};  ///< kXielu: a, b, c and d
};

/// Versions of a state per session: a step reads one and writes another, so that the state after the last committed
/// token is always available. Checkpoints use additional versions, and a step with drafts writes one per token.
constexpr uint32_t kStateSlots = 2;

/// Which tokens the KV cache of a group of layers holds, and which of them a token sees.
enum class ViewKind : uint8_t {
  kSession,  ///< the session's sinks and window
  kSliding,  ///< the window of the training: the last tokens, no sinks
  kColumns,  ///< the last few tokens, regardless of eviction
  kState,    ///< versions of a state, no tokens
  kText,     ///< encoders: all tokens of the text, or at most `window` away in each direction
};
/// Number of parts of a session's window, for layers that see only some of it.
constexpr uint32_t kWindowParts = 256;

struct LayerView {
  ViewKind kind = ViewKind::kSession;
  uint32_t window = 0;  ///< tokens, in kSliding, kColumns and kText; kText: 0 is unlimited
  /// kSession: the sinks and the latest `parts` kWindowParts of the window. 0: the whole window.
  uint32_t parts = 0;

  bool isWholeSession() const { return kind == ViewKind::kSession && parts == 0; }
  /// Tokens of a session's window that are seen.
  uint64_t windowOf(uint64_t session_window) const {
    return parts == 0 ? session_window : (session_window * parts + kWindowParts - 1) / kWindowParts;
  }
};

// How pictures enter a text model: rows of numbers in the place of token embeddings.

/// Most vectors of a row: the embedding, and one vector for each deepstack layer (the first layers of the model).
constexpr uint32_t kMaxPictureParts = 9;
/// TokenStep::place of a picture's row i in a step is kPicturePlace + i. Places for best tokens are smaller.
constexpr uint32_t kPicturePlace = 1u << 30;

struct PictureInput {
  PictureWords words = PictureWords::kNone;
  uint32_t parts = 1;  ///< vectors of n_embd values in a row; part j > 0 is added after layer j - 1
  uint32_t rows_held = 0;  ///< rows that a session holds, of all its pictures
  /// Nonzero: the most rows of a picture, which see each other in layers with a window of their own. A batch then has
  /// all rows of a picture.
  uint32_t rows_together = 0;
  /// Rotary pairs have positions in several dimensions (M-RoPE): time, row and column. Text has the same position in
  /// all of them.
  bool in_dimensions = false;
  uint8_t dimension[kMaxHeadDim / 2] = {};  ///< of each pair

  /// Values of a row.
  uint32_t width(uint32_t n_embd) const { return parts * n_embd; }
};

// Description of a model: its shape as plain numbers, and the tensors of its architecture.

/// How the vectors of tokens become the vector of a text. Values are those numbers in a file's "pooling_type".
enum class FilePooling : uint8_t { kNone, kMean, kFirst, kLast, kRank, kUnknown };

/// The values of a head that form a rotary pair.
enum class RopePairing : uint32_t {
  kInterleaved,  ///< (2i, 2i + 1): llama as converted for GGUF
  kHalves,       ///< (i, i + dims / 2)
};

/// Angles from positions: pair i of a head turns by theta^(-2i / dims) / divisors[i] per token. The rotated values are
/// multiplied by `magnitude`. This covers every known kind of RoPE scaling.
struct RopeTable {
  RopeTable() { std::fill(divisors, divisors + kMaxHeadDim / 2, 1.0); }
  uint32_t dims = 0;  ///< first values of a head that turn: even, <= head_dim of the layers
  double theta = 10000.0;
  double magnitude = 1.0;
  double divisors[kMaxHeadDim / 2];  ///< positive and finite; very large: never turns
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

/// A draft model predicts the next tokens of its target. Its layers have queries only, and read the target's KV cache.
/// The target's TensorIndex holds its tensors as extra layers after the target's own layers. The draft's model-wide
/// tensors are in the first extra layer.
struct DraftDesc {
  static constexpr uint32_t kMaxLayers = 16;
  struct Layer {
    uint32_t n_heads = 0;
    uint32_t n_ff = 0;
    uint32_t memory_of = 0;  ///< layer of the target
  };
  uint32_t n_layers = 0;  ///< 0: no draft model
  uint32_t n_embd = 0;
  float rms_eps = 0;
  Layer layers[kMaxLayers];
};

struct Adapters;      // model/adapters.h
struct PictureInput;  // model/model_desc.h

/// Shape of a decoder-only model: all input of the budgeter and the plan, independent of the device. All
/// counts are within base/checked.h once readModelDesc has returned kOk.
struct ModelDesc {
  const char* architecture = "";  ///< NUL-terminated constant
  uint32_t n_layers = 0;
  uint32_t extra_layers = 0;  ///< extra layers of the file for multi-token prediction
  uint32_t n_embd = 0;
  uint32_t n_vocab = 0;
  uint32_t context_train = 0;  ///< tokens; 0: not stated
  // Largest numbers of all layers.
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t n_ff = 0;
  /// Values of the per-layer inputs, made from the token and its embedding (Gemma 4); 0: none.
  uint32_t layer_input = 0;

  LayerKind kinds[kMaxLayerKinds];
  uint32_t n_kinds = 0;
  Layer layers[kMaxLayers];
  LayerView views[kMaxViews];  ///< the first is the session's
  uint32_t n_views = 1;

  RopePairing rope_pairing = RopePairing::kInterleaved;
  RopeScaling rope_scaling = RopeScaling::kNone;
  RopeTable ropes[kMaxRopes];
  /// `rope_long` replaces the main table if a cache may hold more tokens than this; 0: never.
  uint32_t rope_short_tokens = 0;
  RopeTable rope_long;
  /// Queries at position p of the cache are multiplied by 1 + temperature * ln(floor(p / tokens) + 1). 0: off.
  double query_temperature = 0;
  double temperature_tokens = 0;

  /// Tokens that every layer was trained to see; 0: the whole context.
  uint32_t window_train = 0;

  float rms_eps = 1e-5f;
  // Branches that are added to the residual stream times s (Granite's residual_scale) need no multiplication. The
  // stream is stored divided by s: embeddings are divided by s, and the epsilon of norms that read the stream by
  // s * s. Norms undo the factor.
  float residual_eps = 1e-5f;  ///< epsilon of norms that read the residual stream
  float embedding_scale = 1.0f;
  float logit_scale = 1.0f;        ///< logits are multiplied by it
  float logit_cap = 0;             ///< and then soft-capped, as in SoftCapPush; 0: not
  bool tied_output = false;        ///< the output matrix is the embedding
  bool layer_norms = false;        ///< norms take the mean off first
  bool bare_norms = false;         ///< and have no weights
  uint32_t norm_groups = 1;        ///< parts of a norm of the residual stream, each normed alone
  bool post_norms = false;         ///< branches have post-norms
  float qkv_limit = 0;             ///< clamp queries, keys and values to +- this; 0: no clamp
  bool learned_positions = false;  ///< add a vector per position to the embeddings
  /// Number of passes through the first n_layers / loops layers. Each pass has its own KV cache.
  uint32_t loops = 1;
  bool loop_norms = false;  ///< also apply the last norm between passes
  FilePooling pooling = FilePooling::kNone;
  /// The model returns a vector or a score of each text, and generates no text. It keeps no cache between steps.
  bool encoder = false;
  bool causal = false;       ///< of an encoder: tokens see earlier tokens only
  bool fused_gates = false;  ///< ffn_up includes the gates
  uint32_t token_types = 0;  ///< token types of an encoder; 0: none
  uint32_t labels = 0;       ///< number of scores of a text; 0: the output is a vector
  uint32_t dense = 0;        ///< inner size of the dense head (two matrices); 0: no dense head
  uint8_t rank_activation = kTanh;
  /// Values of a text's output.
  uint32_t textCols() const { return labels != 0 ? labels : n_embd; }
  /// Values of an output row: of a text, or logits.
  uint32_t outputCols() const { return encoder ? textCols() : n_vocab; }
  uint32_t target_embd = 0;  ///< draft model: n_embd of its target
  /// readPrediction() has described the file's prediction block: layers[n_layers], and that layer of the TensorIndex.
  bool has_prediction = false;
  bool predicts = false;                   ///< plans use the prediction block
  DraftDesc draft;                         ///< the draft model of this model
  const Adapters* adapters = nullptr;      ///< adapters loaded with the model; null: none
  const PictureInput* pictures = nullptr;  ///< null: the model takes no pictures

  /// True if a draft model or a prediction block guesses tokens.
  bool makesGuesses() const { return draft.n_layers != 0 || predicts; }
  const LayerKind& kind(uint32_t layer) const { return kinds[layers[layer].kind]; }
  bool ownsMemory(uint32_t layer) const {
    return layers[layer].memory_of == layer && kind(layer).mixer != Mixer::kNone;
  }
  const LayerView& viewOf(uint32_t layer) const { return views[kind(layer).view]; }
  bool slides(uint32_t layer) const { return viewOf(layer).kind == ViewKind::kSliding; }
  /// Number of last layers without a KV cache. A token whose logits are not requested can skip them.
  uint32_t layersWithoutMemory() const {
    uint32_t count = 0;
    while (count < n_layers && !ownsMemory(n_layers - 1 - count)) {
      ++count;
    }
    return count;
  }
  /// True if a layer keeps a state, or has a KV cache.
  bool keepsStates() const { return hasKind(&LayerKind::keepsState); }
  bool attends() const { return hasKind(&LayerKind::attends); }
  bool convolves() const { return hasKind(&LayerKind::convolves); }
  /// True if the table rotates queries or keys of a layer.
  bool usesRope(uint8_t rope) const {
    for (uint32_t k = 0; k < n_kinds; ++k) {
      if (kinds[k].attends() && kinds[k].rope == rope) {
        return true;
      }
    }
    return false;
  }
  /// The main table for a cache of `visible_tokens`.
  const RopeTable& mainRope(uint64_t visible_tokens) const {
    return rope_short_tokens != 0 && visible_tokens > rope_short_tokens ? rope_long
                                                                        : ropes[kMainRope];
  }
  /// Context of the training in tokens; 0: not stated.
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

/// Index of the kind with these fields; adds it if it is new. UINT8_MAX if the table is full.
uint8_t addKind(const LayerKind& kind, ModelDesc* desc);
/// Index of the view with these fields; adds it if it is new. UINT8_MAX if the table is full.
uint8_t addView(const LayerView& view, ModelDesc* desc);
/// Limits layers that see the session's window to `parts[layer]` kWindowParts of it; 0: all. A layer that reads the
/// cache of another layer sees as much as that layer. False if this needs too many kinds or views: the description is
/// then unusable.
bool shareWindow(const uint8_t* parts, ModelDesc* desc);
/// Gives every layer the same kind, which has the largest numbers of the description and sees the session's window.
void makeLayersAlike(ModelDesc* desc);
/// Fails if a layer reads the KV cache of a later layer, or of a layer with a different shape.
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
  kAttentionPostNorm,    // [n_embd], of the attention branch
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
  kLayerScale,           // [1], factor of the residual after the layer
  kLayerInputEmbedding,  // [n_vocab][n_layers * layer_input]
  kLayerInputProjection,  // [n_layers * layer_input][n_embd]
  kLayerInputNorm,        // [layer_input], of every layer's
  kLayerInputGate,        // [layer_input][n_embd]
  kLayerInputOut,         // [n_embd][layer_input]
  kLayerInputPostNorm,    // [n_embd]
  kStateIn,               // [StateShape: channels, or gates, channels and heads (Mamba-2)][n_embd]
  kStateGate,             // [value cols][n_embd]
  kStateFactor,           // [heads][n_embd]
  kStateDecay,            // [decays][n_embd]
  kStateTaps,             // [channels][conv_taps]
  kStateTapsBias,         // [channels]
  kStateSteps,            // [decays], added to the decay inputs
  kStateRates,            // [heads], factors of the decay inputs: negative
  kStateSkip,             // [heads], share of a value that skips the state
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
  kDraftIn,               // [n_embd][2 target_embd]; of a prediction block: [n_embd][2 n_embd]
  kDraftOut,              // [target_embd][n_embd]
  kAttentionGate,         // [n_heads or attended cols][n_embd]
  kScoreBeside,           // [n_heads], an additional score of each head (attention sink)
  kAttentionOutBias,      // [n_embd]
  kQkvBias,               // [(n_heads + 2 n_kv_heads) * head_dim]
  kUpBias,                // [n_ff]
  kDownBias,              // [n_embd]
  kAttentionNormBias,     // [n_embd]
  kFeedForwardNormBias,   // [n_embd]
  kOutputNormBias,        // [n_embd]
  kOutputBias,            // [n_vocab]
  kPositionEmbedding,     // [context_train][n_embd]
  kSharedGate,            // [1][n_embd], of the dense feed-forward
  kRouterAddend,          // [experts], of the router's product
  kRouterNorm,            // [n_embd], of the router's own input
  kExpertGateUp,          // [experts][2 expert n_ff][n_embd]: gate, up stacked
  kExpertGateBias,        // [experts][expert n_ff]
  kExpertUpBias,          // [experts][expert n_ff]
  kExpertDownBias,        // [experts][n_embd]
  kExpertNorm,            // [n_embd], of the experts' own input
  kExpertPostNorm,        // [n_embd], of the experts' output
  kDensePostNorm,         // [n_embd], of the dense feed-forward's output
  kExpertLatentIn,        // [latent][n_embd]
  kExpertLatentOut,       // [n_embd][latent]
  kAttentionSubNorm,      // [n_heads * head_dim], before the attention output matrix
  kFeedForwardSubNorm,    // [n_ff], before the down matrix
  kValueRouter,           // [value experts][n_embd]
  kValueRouterBias,       // [value experts], added to scores for choosing
  kValueExperts,          // [value experts][n_kv_heads * head_dim][n_embd]
  kStateFactorDecay,   // [2 heads][n_embd]: of each key head its heads' factors, then their decays
  kEmbeddingNorm,      // [n_embd]
  kEmbeddingNormBias,  // [n_embd]
  kTokenTypes,         // [token_types][n_embd]
  kAttentionStreamNorm,      // [n_embd], of the residual stream after attention
  kAttentionStreamNormBias,  // [n_embd]
  kSecondStreamNorm,         // [n_embd], of the sum of that and the stream before it
  kSecondStreamNormBias,     // [n_embd]
  kLayerStreamNorm,          // [n_embd], of the residual stream after the layer
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
  kStateKeyTaps,             // [key cols][conv_taps]; kStateTaps: taps of queries
  kStateValueTaps,           // [value cols][conv_taps]
  kHiddenNorm,               // [n_embd], of the vector that a prediction block reads
};
constexpr uint32_t kMatrixRoles = 111;
/// Role of the factors of a matrix's products: one number, or a number per expert.
constexpr TensorRole scaleOf(TensorRole matrix) {
  return static_cast<TensorRole>(static_cast<uint32_t>(matrix) + kMatrixRoles);
}
constexpr uint32_t kTensorRoles = 2 * kMatrixRoles;
/// No tensor.
constexpr TensorRole kNoRole = static_cast<TensorRole>(kTensorRoles);

class TensorIndex;  // model/keys.h

/// True if matrices of this type in the file have kernels.
bool runsAsMatrix(uint32_t tensor_type);

/// Reads and checks the hyperparameters and every tensor of the architecture's table: present, of the right
/// shape, and of a type that this build can run. `file` must already be validated (GgufFile::open). Refuses
/// tensors that the table does not have, except harmless tensors of llama files (see the .cpp). Adds the
/// tensors to `tensors`, which must be empty.
Status readModelDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors);
/// Adds the file's prediction block as layer n_layers of `desc` and `tensors`. Fails if the file has no such block, or
/// one that this build cannot run; the model is then as before.
Status readPrediction(const GgufFile& file, const Log& log, ModelDesc* desc, TensorIndex* tensors);
/// Reads a draft model as its own description.
Status readDraftDesc(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                     ModelDesc* desc, TensorIndex* tensors);

}  // namespace oriel_internal
