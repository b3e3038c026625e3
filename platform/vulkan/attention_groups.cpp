#include "vulkan/kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/checked.h"

namespace oriel_internal {
namespace {

struct Split {
  uint32_t splits;
  uint32_t split_slots;
  uint32_t view;
};

// Splits of an attention op; none for other ops.
Split splitOf(const Op& op) {
  if (op.kind == OpKind::kLatentAttention) {
    const LatentAttentionPush& push = op.push.latent_attention;
    return {push.splits, push.split_slots, push.view};
  }
  if (op.kind == OpKind::kAttention) {
    const AttentionPush& push = op.push.attention;
    return {push.splits, push.split_slots, push.view};
  }
  return {0, 0, 0};
}

}  // namespace

bool AttentionGroups::isCovered(StepList list, const Op& op) {
  const Split split = splitOf(op);
  return (list == StepList::kDecode || list == StepList::kTail || list == StepList::kBatch ||
          list == StepList::kDraft) &&
         split.splits > 1 && split.view < kViews;
}

AttentionGroups::Grid AttentionGroups::gridOf(const Op& op, uint32_t rows, const Kernel& kernel) {
  const Split split = splitOf(op);
  return {{kernel.grid[0], kernel.grid[1] / rows}, split.splits, split.split_slots};
}

void AttentionGroups::add(StepList list, const Op& op, uint32_t rows, const Kernel& kernel) {
  if (isCovered(list, op) && grids_[splitOf(op).view].splits == 0) {
    grids_[splitOf(op).view] = gridOf(op, rows, kernel);
  }
}

bool AttentionGroups::covers(StepList list, const Op& op, uint32_t rows, const Kernel& kernel,
                             uint32_t* offset_bytes) const {
  if (!isCovered(list, op)) {
    return false;
  }
  const uint32_t view = splitOf(op).view;
  *offset_bytes =
      static_cast<uint32_t>(offsetof(StepHeader, attention_groups)) + 4 * kGroupWords * view;
  return grids_[view] == gridOf(op, rows, kernel);
}

void AttentionGroups::write(void* step, uint32_t n_tokens) const {
  const StepBlock block(step);
  uint32_t* group = block.header().attention_groups;
  std::memset(group, 0, sizeof(StepHeader::attention_groups));
  for (uint32_t view = 0; view < kViews; ++view, group += kGroupWords) {
    const Grid& grid = grids_[view];
    if (grid.splits == 0) {
      continue;
    }
    uint64_t slots = 0;
    for (uint32_t t = 0; t < n_tokens; ++t) {
      const View& seen = block.view(t, view);
      slots = std::max(slots, uint64_t{seen.n_sinks} + seen.count);
    }
    group[0] = grid.across[0];
    group[1] = grid.across[1] * n_tokens;
    group[2] = static_cast<uint32_t>(
        std::min<uint64_t>(std::max<uint64_t>(ceilDiv(slots, grid.split_slots), 1), grid.splits));
  }
}

}  // namespace oriel_internal
