// Workgroups of the split attention of a decoding token or batch. The number changes from token to token, while the
// commands are recorded once, so these dispatches read their sizes from the step block.
#pragma once

#include "plan/plan.h"
#include "vulkan/kernels.h"

namespace oriel_internal {

class AttentionGroups {
 public:
  /// Records the grid of the first split decoding op of each view, and ignores other ops.
  /// `rows`: most tokens of the list.
  void add(StepList list, const Op& op, uint32_t rows, const Kernel& kernel);

  /// True if the step block holds the op's grid, at *offset_bytes from its start.
  bool covers(StepList list, const Op& op, uint32_t rows, const Kernel& kernel,
              uint32_t* offset_bytes) const;

  /// Fills in StepHeader::attention_groups from the first `n_tokens` of the step block. The token that sees most decides
  /// the number of splits.
  void write(void* step, uint32_t n_tokens) const;

 private:
  struct Grid {
    uint32_t across[2];  ///< for a token
    uint32_t splits;     ///< 0: no such op
    uint32_t split_slots;

    bool operator==(const Grid& other) const {
      return across[0] == other.across[0] && across[1] == other.across[1] &&
             splits == other.splits && split_slots == other.split_slots;
    }
  };
  static bool isCovered(StepList list, const Op& op);
  static Grid gridOf(const Op& op, uint32_t rows, const Kernel& kernel);
  static constexpr uint32_t kViews = 2;  ///< limit of the step block: the first views
  static constexpr uint32_t kGroupWords = sizeof(StepHeader::attention_groups) / 4 / kViews;
  Grid grids_[kViews] = {};
};

}  // namespace oriel_internal
