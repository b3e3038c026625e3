// Shapes of published models, for planning before a file is there. Static data; bytes are always
// computed from it.
#pragma once

#include <cstdint>

#include "budget/speed.h"
#include "plan/plan.h"

namespace oriel {

/// What besides the matrices and norms of a llama layer has parameters.
enum ShapeFeature : uint32_t {
  kTied = 1u << 0,              ///< the output matrix is the embedding
  kPlainFeedForward = 1u << 1,  ///< no gate: two matrices instead of three
  kQkvBias = 1u << 2,
  kAllBiases = 1u << 3,         ///< on every matrix of a layer, and on norms
  kNormBias = 1u << 4,          ///< LayerNorm: a bias beside each weight
  kHeadNorms = 1u << 5,         ///< a norm of head_dim on queries and one on keys
  kFourNorms = 1u << 6,         ///< before and after attention and feed-forward
  kLearnedPositions = 1u << 7,  ///< an embedding for each of context_train positions
  /// Experts, latent projections or nested models: the parameters are not counted.
  kOtherWeights = 1u << 8,
  kRowNorms = 1u << 9,  ///< a norm of all queries together and one of all keys
};

struct ModelShape {
  const char* name;
  uint32_t n_layers, n_heads, n_kv_heads, head_dim;
  uint32_t n_embd, n_ff, n_vocab;
  uint32_t context_train;
  uint32_t features;
  uint32_t sliding_layers;  ///< of n_layers, see at most sliding_window tokens
  uint32_t sliding_window;
  uint32_t shared_layers;  ///< of n_layers, have no cache of their own and are not sliding
  uint32_t latent_dim;     ///< MLA: values a token takes in one layer; 0: keys and values
  uint32_t conv_layers =
      0;  ///< of n_layers, are short convolutions of conv_taps tokens instead of attention
  uint32_t conv_taps = 0;

  bool weightsKnown() const { return (features & kOtherWeights) == 0; }
};

uint32_t knownShapeCount();
/// `index` < knownShapeCount().
const ModelShape& knownShape(uint32_t index);
/// nullptr when there is none of that name.
const ModelShape* findShape(const char* name);

ModelDesc modelDescOf(const ModelShape& shape);

/// 0 when the weights are not known.
uint64_t shapeParameters(const ModelShape& shape);
/// Weights with every matrix in `type`, embeddings included, and every vector in f32, laid out as the
/// plan of a file does it. For a shape whose weights are not known: none.
PlanTotals measureShape(const ModelShape& shape, WeightType type);

/// The work of a step as measureShape counts the matrices; not known where they are not.
WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type);

}  // namespace oriel
