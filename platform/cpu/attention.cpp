#include "cpu/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention.cpp"
#include "cpu/targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/attention_chunk-inl.h"
#include "cpu/attention_one-inl.h"

HWY_BEFORE_NAMESPACE();
namespace oriel_internal {
namespace HWY_NAMESPACE {

void attend(const AttentionTask& task, uint32_t kv_head, uint32_t first, uint32_t count,
            uint32_t first_split, uint32_t n_splits) {
  const Splits splits = {first_split, n_splits};
  const AttentionPush& p = task.push;
  const uint32_t group = p.n_heads / p.n_kv_heads;
  const bool split_up = p.splits > 1;  // shares of different tokens begin at different slots
  for (uint32_t t = 0; t < count;) {
    const uint32_t token = first + t;
    // The token shares its cache with no other token, as in decoding: memory bandwidth is the limit.
    const bool alone =
        task.apart || (!together(task, token, token - 1) && !together(task, token, token + 1));
    const bool one = (split_up || alone) && p.head_dim % kN == 0;
    const uint32_t most = one ? kMostHeads : mostQueries(p.head_dim);
    const uint32_t passes = (group + most - 1) / most;
    const uint32_t heads = (group + passes - 1) / passes;
    const uint32_t at_most =
        one || split_up ? 1 : std::min(attentionTokens(group, p.head_dim), count - t);
    uint32_t tokens = 1;
    while (tokens < at_most && together(task, token, token + tokens)) {
      ++tokens;
    }
    for (uint32_t h = 0; h < group; h += heads) {
      const uint32_t head = kv_head * group + h;
      const uint32_t n_heads = std::min(heads, group - h);
      if (one) {
        attendOne(task, kv_head, token, head, n_heads, splits);
      } else {
        attendMany(task, kv_head, token, tokens, head, n_heads, splits);
      }
    }
    t += tokens;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace oriel_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace oriel_internal {
AttendFn attendKernel(SimdTarget target) { return &ORIEL_CPU_PICK(target, attend); }
}  // namespace oriel_internal
#endif
