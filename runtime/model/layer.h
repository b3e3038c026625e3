// What a layer does: a handful of kinds a model, an index a layer.
#pragma once

#include <cstdint>

#include "shaders/shared/layout.h"

namespace oriel {

/// What a layer makes of the tokens before.
enum class Mixer : uint8_t {
  kAttention,  ///< softmax attention over keys and values
  kShortConv,  ///< a gated causal convolution over a few tokens (LFM2)
  kState,      ///< a recurrent state; no architecture that runs here has one yet
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
  bool sigmoid = false;     ///< scores are sigmoids, not a softmax over all experts
  bool normalised = false;  ///< weights of the chosen are divided by their sum
  float scale = 1;          ///< and multiplied by this
};

/// One kind of layer. All counts are within base/limits.h.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  uint8_t rope = kMainRope;       ///< index of ModelDesc::ropes; kNoRope: positions are not encoded
  uint8_t view = 0;               ///< index of ModelDesc::views: which tokens it sees
  bool gelu = false;              ///< feed-forward gate: GELU (tanh form); else SiLU
  bool row_norms = false;         ///< norms of queries and keys are over all heads together
  bool norms_after_rope = false;  ///< and come after RoPE
  bool value_norm = false;        ///< values are divided by their root mean square, head by head
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
  uint32_t conv_taps = 0;     ///< kShortConv: 1 .. kMaxConvTaps tokens, itself included
  uint32_t state_words = 0;   ///< kState: floats of a state
  float attention_scale = 0;  ///< of scores
  float soft_cap = 0;         ///< of scores, as in AttentionPush; 0: none

  uint32_t queryCols() const { return n_heads * head_dim; }
  uint32_t kvCols() const { return n_kv_heads * head_dim; }
  bool isLatent() const { return latent_dim != 0; }
  /// Of a query's head: values that are scored with the latent.
  uint32_t plainDim() const { return head_dim - rope_dim; }
  /// What a token's memory holds of it.
  uint32_t latentCols() const { return latent_dim + rope_dim; }
  /// What the matrix behind attention reads.
  uint32_t attendedCols() const { return isLatent() ? n_heads * value_dim : queryCols(); }
};

struct Layer {
  uint8_t kind = 0;  ///< index of ModelDesc::kinds
  uint16_t memory_of =
      0;  ///< the layer whose memory it reads: itself, or an earlier one of the same shape
};

/// Versions of a state: a step reads one and writes another, so that the one after the last committed token is
/// always there.
constexpr uint32_t kStateSlots = 2;

/// How the tokens of a session take, and see, the slots of a group of layers' memories.
enum class ViewKind : uint8_t {
  kSession,  ///< the session's sinks and window
  kSliding,  ///< a window that the layers were trained with: the last tokens, no sinks
  kColumns,  ///< the last few tokens whatever was evicted
  kState,    ///< no tokens: versions of a state
};
struct LayerView {
  ViewKind kind = ViewKind::kSession;
  uint32_t window = 0;  ///< tokens: of kSliding and kColumns
};

}  // namespace oriel
