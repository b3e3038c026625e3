#include "vulkan/attention_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/checked.h"

namespace oriel {
namespace {

constexpr uint32_t kGroupWords = sizeof(StepHeader::attention_groups) / 4 / 2;  // of one grid

bool isSplit(StepList list, const Op& op) {
  return list == StepList::kDecode && op.kind == OpKind::kAttention && op.push.attention.splits > 1;
}

}  // namespace

void AttentionGroups::add(StepList list, const Op& op, const Kernel& kernel) {
  if (isSplit(list, op)) {
    const AttentionPush& push = op.push.attention;
    grids_[push.local != 0 ? 1 : 0] = {
        {kernel.grid[0], kernel.grid[1]}, push.splits, push.split_slots};
  }
}

bool AttentionGroups::covers(StepList list, const Op& op, uint32_t* offset_bytes) const {
  if (!isSplit(list, op)) {
    return false;
  }
  const AttentionPush& push = op.push.attention;
  const uint32_t local = push.local != 0 ? 1 : 0;
  *offset_bytes =
      static_cast<uint32_t>(offsetof(StepHeader, attention_groups)) + 4 * kGroupWords * local;
  return grids_[local].splits == push.splits && grids_[local].split_slots == push.split_slots;
}

void AttentionGroups::write(void* step) const {
  uint8_t* const block = static_cast<uint8_t*>(step);
  TokenStep token;
  std::memcpy(&token, block + sizeof(StepHeader), sizeof(token));
  uint32_t words[2 * kGroupWords] = {};
  for (uint32_t local = 0; local < 2; ++local) {
    const Grid& grid = grids_[local];
    if (grid.splits == 0) {
      continue;
    }
    const uint32_t seen = local != 0 ? token.local_n_ring : token.n_sinks + token.n_ring;
    uint32_t* const group = words + kGroupWords * local;
    group[0] = grid.across[0];
    group[1] = grid.across[1];
    group[2] = static_cast<uint32_t>(
        std::min<uint64_t>(std::max<uint64_t>(ceilDiv(seen, grid.split_slots), 1), grid.splits));
  }
  std::memcpy(block + offsetof(StepHeader, attention_groups), words, sizeof(words));
}

}  // namespace oriel
