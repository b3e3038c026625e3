// Shapes of published models, for planning before a file is there. Static data; bytes are always
// computed from it.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace oriel_internal {

/// What besides the matrices and norms of a llama layer has parameters, or a place among the weights.
enum ShapeFeature : uint32_t {
  kTied = 1u << 0,              ///< the output matrix is the embedding
  kPlainFeedForward = 1u << 1,  ///< no gate: two matrices instead of three
  kQkvBias = 1u << 2,
  kAllBiases = 1u << 3,         ///< on every matrix of a layer, and on norms
  kNormBias = 1u << 4,          ///< LayerNorm: a bias beside each weight
  kHeadNorms = 1u << 5,         ///< a norm of head_dim on queries and one on keys
  kFourNorms = 1u << 6,         ///< before and after attention and feed-forward
  kLearnedPositions = 1u << 7,  ///< an embedding for each of context_train positions
  /// Latent projections or nested models: the parameters are not counted.
  kOtherWeights = 1u << 8,
  kRowNorms = 1u << 9,         ///< a norm of all queries together and one of all keys
  kPostNorms = 1u << 10,       ///< norms behind attention and feed-forward instead of before
  kNormsAfterRope = 1u << 11,  ///< of kHeadNorms: they come after RoPE
  kValueNorm = 1u << 12,       ///< values are divided by their root mean square
  kLayerScale = 1u << 13,      ///< a factor behind every layer
  kRouterBias = 1u << 14,  ///< a bias of experts for choosing them, which counts as no parameter
  kGatedAttention = 1u << 15,  ///< queries come with as many gates of what attention gives
  kHeadGates = 1u << 16,       ///< a matrix makes a gate for each head
};

/// What sets layers apart; all 0: attention over everything and one feed-forward.
struct ShapeLayers {
  /// The sort of each layer, repeated until all have one: 'a' attention to the session's tokens, 's' to the last
  /// sliding_window ones, 'c' a short convolution of conv_taps tokens, 'r' a recurrent `state`, 'b' both, attention
  /// beside such a state. Where a list was not published with the model, only how many there are
  /// of each is meant: their order hardly matters to bytes.
  const char* sorts = "a";
  uint32_t sliding_window = 0;
  uint32_t sliding_head_dim = 0;  ///< 0: head_dim
  uint32_t conv_taps = 0;
  StateShape state;
  uint32_t latent_dim = 0;  ///< as in LayerKind, with what belongs to it
  uint32_t rope_dim = 0, value_dim = 0, query_latent_dim = 0;
  bool joined_latent = false;
  uint32_t shared_layers =
      0;                   ///< the last so many read the cache of the last one of their sort before
  uint32_t shared_ff = 0;  ///< n_ff of those; 0: as the others
  uint32_t layer_input = 0;       ///< ModelDesc::layer_input
  Experts experts;                ///< in all layers but ...
  uint32_t dense_layers = 0;      ///< ... the first so many
  uint32_t shared_expert_ff = 0;  ///< of a feed-forward beside the experts

  char sort(uint32_t layer) const;
};

struct ModelShape {
  const char* name;
  const char* architecture;  ///< general.architecture of its files
  uint32_t n_layers, n_heads, n_kv_heads, head_dim;
  uint32_t n_embd, n_ff, n_vocab;
  uint32_t context_train;
  uint32_t features;
  ShapeLayers layers = {};

  bool has(uint32_t feature) const { return (features & feature) != 0; }
  bool weightsKnown() const { return !has(kOtherWeights); }
  /// Layers of these sorts ("sb").
  uint32_t count(const char* sorts) const;
};

uint32_t knownShapeCount();
/// `index` < knownShapeCount().
const ModelShape& knownShape(uint32_t index);
/// nullptr when there is none of that name.
const ModelShape* findShape(const char* name);

ModelDesc modelDescOf(const ModelShape& shape);

}  // namespace oriel_internal
