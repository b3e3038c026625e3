// Shapes of published models, to plan without a file. Static data; bytes are always computed from it.
#pragma once

#include <cstdint>

#include "budget/speed.h"
#include "oriel/tools.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Weights besides the matrices and norms of a llama layer.
enum ShapeFeature : uint32_t {
  kTied = 1u << 0,              ///< the output matrix is the embedding
  kPlainFeedForward = 1u << 1,  ///< no gate: two matrices instead of three
  kQkvBias = 1u << 2,
  kAllBiases = 1u << 3,         ///< on every matrix of a layer, and on norms
  kNormBias = 1u << 4,          ///< LayerNorm: a bias for each weight
  kHeadNorms = 1u << 5,         ///< a norm of head_dim on queries and one on keys
  kFourNorms = 1u << 6,         ///< before and after attention and feed-forward
  kLearnedPositions = 1u << 7,  ///< an embedding for each of context_train positions
  /// Latent projections or nested models: the parameters are not counted.
  kOtherWeights = 1u << 8,
  kRowNorms = 1u << 9,         ///< one norm for all queries together and one for all keys
  kPostNorms = 1u << 10,       ///< norms after attention and feed-forward instead of before
  kNormsAfterRope = 1u << 11,  ///< of kHeadNorms: they come after RoPE
  kValueNorm = 1u << 12,       ///< values are divided by their root mean square
  kLayerScale = 1u << 13,      ///< a factor after every layer
  kRouterBias = 1u << 14,      ///< a bias for choosing experts, not counted as a parameter
  kGatedAttention = 1u << 15,  ///< queries include a gate for each value of attention's output
  kHeadGates = 1u << 16,       ///< a matrix makes a gate for each head
};

/// Differences between layers; all 0: full attention and one feed-forward.
struct ShapeLayers {
  /// The sort of each layer, repeated cyclically: 'a' attention to the session's tokens, 's' to the last sliding_window
  /// ones, 'c' a short convolution of conv_taps tokens, 'r' a recurrent `state`, 'b' both attention and such a state. If
  /// a model's list is unpublished, only the counts are meant: the order hardly affects bytes.
  const char* sorts = "a";
  uint32_t sliding_window = 0;
  uint32_t sliding_head_dim = 0;  ///< 0: head_dim
  uint32_t conv_taps = 0;
  StateShape state;
  uint32_t latent_dim = 0;  ///< as in LayerKind, with its other fields
  uint32_t rope_dim = 0, value_dim = 0, query_latent_dim = 0;
  bool joined_latent = false;
  uint32_t shared_layers =
      0;  ///< number of last layers that read the cache of an earlier layer of their sort
  uint32_t shared_ff = 0;         ///< n_ff of these layers; 0: as in the others
  uint32_t layer_input = 0;       ///< ModelDesc::layer_input
  Experts experts;                ///< in all layers except ...
  uint32_t dense_layers = 0;      ///< ... the first dense_layers
  uint32_t shared_expert_ff = 0;  ///< of a feed-forward next to the experts

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
  /// Number of layers of these sorts ("sb").
  uint32_t count(const char* sorts) const;
};

uint32_t knownShapeCount();
/// `index` < knownShapeCount().
const ModelShape& knownShape(uint32_t index);
/// nullptr if unknown.
const ModelShape* findShape(const char* name);

ModelDesc modelDescOf(const ModelShape& shape);

// Bytes and work of a shape's weights.

/// 0 if the weights are unknown.
uint64_t shapeParameters(const ModelShape& shape);

/// Weights with every matrix in `type`, including embeddings, and every vector in f32, laid out as in the plan of a
/// file. Expert routers are f32, as in published files. `wanted` as in measureWeights. Empty for a shape with unknown
/// weights.
PlanTotals measureShape(const ModelShape& shape, WeightType type, const OnFile& wanted);

/// The work of a step, with the matrices of measureShape; unknown if they are. `model` must outlive it.
WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type,
                 const OnFile& on_file = OnFile());

// Shared by the tools.h calls that take a known shape's name.

/// Parses "NAME" or "NAME:FORMAT": a known shape and the type of its matrices.
Status readShape(const char* text, const Log& log, const ModelShape** shape, WeightType* type);

}  // namespace oriel_internal
