// The attention from a reply to evicted tokens: queries of the reply's first tokens against the stored keys of one
// layer.
#pragma once

#include "exec/recall_file.h"

namespace oriel_internal {

/// Most queries, from the last tokens of a reply's opening.
constexpr uint32_t kRecallQueries = 4;

/// The last layer whose queries remain after all memories are filled (StepRun::kFill). Its queries find turns as well
/// as the queries of all layers (docs/decisions/017-retrieval.md).
struct RecallLayer {
  bool any = false;  ///< false: its memory has another kind, or no token is stored
  uint32_t layer = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;
  BufferRef queries;  ///< [chunk][stride]; per token [n_heads][2][head_dim], the second for sinks
  uint32_t stride = 0;

  uint64_t queryFloats() const { return uint64_t{n_heads} * head_dim; }
};
/// `cache`: the session's.
RecallLayer findRecallLayer(const Plan& plan, const ModelDesc& model, const CacheShape& cache);

/// Sums of exp(score) over the tokens of passages. Keys are at position 0, queries at the position for sinks.
class RecallScorer {
 public:
  /// `queries`: [count][n_heads][head_dim].
  RecallScorer(const RecallLayer& layer, const float* queries, uint32_t count)
      : layer_(layer), queries_(queries), count_(count) {}

  /// Adds a token's weights for each head and query. `keys`: its stored keys (RecallFile::readKeys).
  void add(const uint8_t* keys, double* sums) const;
  uint32_t sums() const { return count_ * layer_.n_heads; }

 private:
  const RecallLayer& layer_;
  const float* queries_;
  uint32_t count_;
};

}  // namespace oriel_internal
