// Attention of all query heads of one key head over their window. Bytes moved: the slots' keys and
// values, in decoding once for up to 4 queries, in chunks once for up to kMostQueries; 4 * head_dim
// operations per query and slot.
#pragma once

#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

struct AttentionTask {
  explicit AttentionTask(const StepBlock& block) : step(block) {}

  AttentionPush push = {};
  KvFormat k_format = KvFormat::kF16;
  KvFormat v_format = KvFormat::kF16;
  const float* queries = nullptr;
  StepBlock step;
  const uint32_t* keys = nullptr;
  const uint32_t* values = nullptr;
  const float* more_scores = nullptr;  ///< attention sinks by head, with value 0; null: none
  float* out = nullptr;
  uint32_t n_tokens = 1;  ///< of the step
  bool apart = false;     ///< process each token as if it were alone
};

/// Queries of a chunk worked on at a time. Heads wider than kNarrowHead get half of them, so that the gathered values
/// take the same bytes.
constexpr uint32_t kMostQueries = 48;
constexpr uint32_t kNarrowHead = 256;
constexpr uint32_t mostQueries(uint32_t head_dim) {
  return head_dim <= kNarrowHead ? kMostQueries : kMostQueries / 2;
}
/// Tokens that share loaded keys and values, if `group` query heads share a key head.
constexpr uint32_t attentionTokens(uint32_t group, uint32_t head_dim) {
  return group < mostQueries(head_dim) ? mostQueries(head_dim) / group : 1;
}

/// Tokens first .. first + count - 1 with all query heads of `kv_head`, for `n_splits` splits. The result is
/// stored as the share of the first split.
using AttendFn = void (*)(const AttentionTask& task, uint32_t kv_head, uint32_t first,
                          uint32_t count, uint32_t first_split, uint32_t n_splits);
AttendFn attendKernel(SimdTarget target);

}  // namespace oriel_internal
