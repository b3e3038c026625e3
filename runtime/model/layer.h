// Layer descriptions: a model has a few kinds, and each layer has the index of its kind.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
