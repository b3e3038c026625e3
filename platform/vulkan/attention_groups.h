// How many workgroups a decoding token's split attention needs. It changes from token to token while
// the commands are recorded once, so these dispatches read their sizes from the step block.
#pragma once

#include "plan/plan.h"
#include "vulkan/kernels.h"

namespace oriel {

class AttentionGroups {
 public:
  /// Remembers the grid of an op that is split when it decodes; ignores every other.
  void add(StepList list, const Op& op, const Kernel& kernel);

  /// True for an op whose grid the step block holds; *offset_bytes is where, from its start.
  bool covers(StepList list, const Op& op, uint32_t* offset_bytes) const;

  /// Fills in StepHeader::attention_groups from the first token of the step block.
  void write(void* step) const;

 private:
  struct Grid {
    uint32_t across[2];
    uint32_t splits;  ///< 0: there is no such op
    uint32_t split_slots;
  };
  Grid grids_[2] = {};  ///< layers that see the session's window, local layers
};

}  // namespace oriel
