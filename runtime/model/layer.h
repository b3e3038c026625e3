// What a layer does: a handful of kinds a model, an index a layer.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel_internal {

/// What a layer makes of the tokens before.
enum class Mixer : uint8_t {
  kAttention,  ///< softmax attention over keys and values
  kShortConv,  ///< a gated causal convolution over a few tokens (LFM2)
  kState,      ///< a recurrent state
  kParallel,   ///< attention, and a state beside it: both of the same input, both added
  kNone,       ///< nothing: the layer is a feed-forward alone
};

/// Where attention's result has no gate (LayerKind::gate).
constexpr uint8_t kNoGate = UINT8_MAX;

/// How a state takes in a token (StateScanPush has the formulas).
enum class StateRule : uint8_t {
  kNone,
  kDelta,   ///< the gated delta rule (Qwen3.5)
  kMamba2,  ///< Mamba-2
};

/// A recurrent state: a matrix [value_dim][key_dim] for each head, and the last inputs of a short convolution.
struct StateShape {
  StateRule rule = StateRule::kNone;
  bool normed = false;  ///< what it gives is normed: Mamba-2 may leave that out
  bool in_order =
      false;  ///< kDelta: heads that share a key follow each other; else keys take turns
  uint32_t conv_taps = 0;  ///< 2 .. kMaxConvTaps tokens, itself included
  uint32_t key_heads = 0;  ///< of keys and queries: divides heads
  uint32_t heads = 0;      ///< of values
  uint32_t key_dim = 0;    ///< 1 .. kMaxStateDim
  uint32_t value_dim = 0;  ///< likewise
  bool operator==(const StateShape& b) const {
    return rule == b.rule && normed == b.normed && in_order == b.in_order &&
           conv_taps == b.conv_taps && key_heads == b.key_heads && heads == b.heads &&
           key_dim == b.key_dim && value_dim == b.value_dim;
  }
  uint32_t keyCols() const { return key_heads * key_dim; }
  uint32_t valueCols() const { return heads * value_dim; }
  /// What is convolved: queries, keys and values.
  uint32_t channels() const { return 2 * keyCols() + valueCols(); }
  uint32_t matrixValues() const { return valueCols() * key_dim; }
  uint32_t columnWords() const { return (conv_taps - 1) * channels(); }
};

constexpr uint8_t kNoRope = UINT8_MAX;
/// Indices of ModelDesc::ropes.
constexpr uint8_t kMainRope = 0;
constexpr uint8_t kSlidingRope = 1;
constexpr uint32_t kMaxRopes = 2;

/// A mixture of experts: feed-forwards of which a token takes the best few by a router's word.
struct Experts {
  uint32_t count = 0;  ///< 0: none; else 1 .. kMaxExperts
  uint32_t used = 0;   ///< by a token: 1 .. kMaxExpertsUsed, at most count
  uint32_t n_ff = 0;
  bool sigmoid = false;       ///< scores are sigmoids, not a softmax over all experts
  bool normalised = false;    ///< weights of the chosen are divided by their sum
  float scale = 1;            ///< and multiplied by this
  uint32_t groups = 1;        ///< equal runs of experts: divides count
  uint32_t used_groups = 1;   ///< of which only the best so many have experts that may be chosen
  bool routed_first = false;  ///< by the layer's input as it is, before attention
  bool own_input = false;  ///< router, experts and the feed-forward beside have norms of their own
  bool shared_gate = false;  ///< the feed-forward beside is multiplied by a sigmoid
  float shared_scale = 1;    ///< or by this
  uint32_t latent = 0;  ///< experts work on a vector of so many values made of the input; 0: on it

  bool operator==(const Experts& b) const {
    return count == b.count && used == b.used && n_ff == b.n_ff && sigmoid == b.sigmoid &&
           normalised == b.normalised && scale == b.scale && groups == b.groups &&
           used_groups == b.used_groups && routed_first == b.routed_first &&
           own_input == b.own_input && shared_gate == b.shared_gate &&
           shared_scale == b.shared_scale && latent == b.latent;
  }
};

/// One kind of layer. All counts are within base/limits.h.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  uint8_t rope = kMainRope;  ///< index of ModelDesc::ropes; kNoRope: positions are not encoded
  uint8_t view = 0;  ///< index of ModelDesc::views: which tokens it sees; of kState: of its state
  uint8_t activation = kSilu;  ///< of the feed-forward's gate
  bool plain = false;          ///< the feed-forward has no gate: its one matrix is activated
  bool parallel = false;       ///< the feed-forward reads what attention reads, not its result
  bool norms_summed = false;   ///< what experts and the feed-forward beside give is normed together
  bool row_norms = false;      ///< norms of queries and keys are over all heads together
  bool norms_after_rope = false;  ///< and come after RoPE
  bool value_norm = false;        ///< values are divided by their root mean square, head by head
  bool head_norms = false;        ///< those have weights of their own for each head
  uint8_t gate = kNoGate;         ///< what attention gives is multiplied by: kGateSigmoid and so on
  bool gate_heads = false;        ///< one gate a head; else one a value
  bool alibi = false;             ///< scores fall with the distance: AttentionPush::alibi_heads
  bool gate_beside = false;       ///< made beside queries, by their matrix; else by one of its own
  uint8_t state_view = 0;         ///< kParallel: index of the view of its state
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;  ///< divides n_heads
  uint32_t head_dim = 0;    ///< even, kMinHeadDim .. kMaxHeadDim
  // Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024): a token is remembered as one vector, the latent, of
  // which every head makes its key and its value, and one rotated key that all heads share. A query has head_dim values,
  // of which the last rope_dim are scored with that key.
  uint32_t latent_dim = 0;        ///< values of the latent; 0: keys and values of heads
  uint32_t rope_dim = 0;          ///< values of the rotated key: even, below head_dim
  uint32_t value_dim = 0;         ///< values that a head makes of a latent
  uint32_t query_latent_dim = 0;  ///< queries are made of a vector of so many; 0: of the input
  bool joined_latent = false;     ///< the file has matrices of keys and values in one tensor
  uint32_t n_ff = 0;  ///< of the feed-forward that every token takes; 0: none, experts alone
  Experts experts;
  Experts value_experts;      ///< that make values; n_ff is not used
  uint32_t conv_taps = 0;     ///< kShortConv: 1 .. kMaxConvTaps tokens, itself included
  uint32_t state_words = 0;   ///< of layers with a state: 32-bit words of one, in float32
  StateShape state;           ///< and what it is made of
  float attention_scale = 0;  ///< of scores
  float soft_cap = 0;         ///< of scores, as in AttentionPush; 0: none

  bool attends() const { return mixer == Mixer::kAttention || mixer == Mixer::kParallel; }
  bool convolves() const { return mixer == Mixer::kShortConv; }
  bool keepsState() const { return mixer == Mixer::kState || mixer == Mixer::kParallel; }
  /// View of its state.
  uint8_t viewOfState() const { return mixer == Mixer::kParallel ? state_view : view; }
  uint32_t queryCols() const { return n_heads * head_dim; }
  uint32_t kvCols() const { return n_kv_heads * head_dim; }
  bool isLatent() const { return latent_dim != 0; }
  /// Of a query's head: values that are scored with the latent.
  uint32_t plainDim() const { return head_dim - rope_dim; }
  /// What a token's memory holds of it.
  uint32_t latentCols() const { return latent_dim + rope_dim; }
  uint32_t gateCols() const { return gate == kNoGate ? 0 : gate_heads ? n_heads : attendedCols(); }
  /// What an expert reads and gives, where a layer's vectors have `n_embd` values.
  uint32_t expertCols(uint32_t n_embd) const {
    return experts.latent != 0 ? experts.latent : n_embd;
  }
  /// Its branches need two vectors beside the residual stream and what is normed.
  bool hasBranches() const {
    return parallel || (experts.count != 0 && (norms_summed || experts.latent != 0));
  }
  /// What the matrix behind attention reads.
  uint32_t attendedCols() const { return isLatent() ? n_heads * value_dim : queryCols(); }
};

struct Layer {
  uint8_t kind = 0;  ///< index of ModelDesc::kinds
  uint16_t memory_of =
      0;  ///< the layer whose memory it reads: itself, or an earlier one of the same shape
  float activation[4] = {};  ///< of kXielu: a, b, c and d
};

/// Versions of a state that every session has: a step reads one and writes another, so that the one after the last
/// committed token is always there. Checkpoints come on top.
constexpr uint32_t kStateSlots = 2;

/// How the tokens of a session take, and see, the slots of a group of layers' memories.
enum class ViewKind : uint8_t {
  kSession,  ///< the session's sinks and window
  kSliding,  ///< a window that the layers were trained with: the last tokens, no sinks
  kColumns,  ///< the last few tokens whatever was evicted
  kState,    ///< no tokens: versions of a state
  kText,     ///< of encoders: all tokens of the text, or those at most `window` away either way
};
/// Parts that a session's window has for layers that see less than all of it.
constexpr uint32_t kWindowParts = 256;

struct LayerView {
  ViewKind kind = ViewKind::kSession;
  uint32_t window = 0;  ///< tokens: of kSliding and kColumns; of kText, where 0 is no bound
  /// Of kSession: so many kWindowParts of the window, the latest, behind the same sinks. 0: all of it.
  uint32_t parts = 0;

  bool isWholeSession() const { return kind == ViewKind::kSession && parts == 0; }
  /// Tokens of a session's window that are seen.
  uint64_t windowOf(uint64_t session_window) const {
    return parts == 0 ? session_window : (session_window * parts + kWindowParts - 1) / kWindowParts;
  }
};

}  // namespace oriel_internal
