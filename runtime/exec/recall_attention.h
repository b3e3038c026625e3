// What attention a reply would give to tokens that left the window: the queries of its first tokens against keys that were
// kept of one layer.
#pragma once

#include "exec/recall_file.h"

namespace oriel_internal {

/// Queries of the last tokens of what opens a reply, at most.
constexpr uint32_t kRecallQueries = 4;

/// The layer whose queries are left behind when all memories are filled (StepRun::kFill): the last that has one. What it
/// looks for finds a turn as well as what all layers look for (docs/recall.md).
struct RecallLayer {
  bool any = false;  ///< false: its memory is of another kind, or no token of it is kept
  uint32_t layer = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;
  BufferRef
      queries;  ///< [chunk][stride], of a token [n_heads][2][head_dim]: the second is that for sinks
  uint32_t stride = 0;

  uint64_t queryFloats() const { return uint64_t{n_heads} * head_dim; }
};
/// `cache`: of the session.
RecallLayer findRecallLayer(const Plan& plan, const ModelDesc& model, const CacheShape& cache);

/// Sums of exp(score) over the tokens of passages. Keys are those of position 0, queries stand where sinks are seen from.
class RecallScorer {
 public:
  /// `queries`: [count][n_heads][head_dim].
  RecallScorer(const RecallLayer& layer, const float* queries, uint32_t count)
      : layer_(layer), queries_(queries), count_(count) {}

  /// Adds up the weights of a token for each head and query. `keys`: its kept keys (RecallFile::readKeys).
  void add(const uint8_t* keys, double* sums) const;
  uint32_t sums() const { return count_ * layer_.n_heads; }

 private:
  const RecallLayer& layer_;
  const float* queries_;
  uint32_t count_;
};

}  // namespace oriel_internal
