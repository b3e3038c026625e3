// How much an op asks for: by this long steps are cut into pieces of like length.
#pragma once

#include "plan/plan.h"

namespace oriel {

/// Counted in multiply-adds of a product; other ops in products that take about as long.
struct OpWork {
  double fixed = 0;
  double per_seen = 0;        ///< for each token that a query sees
  double per_local_seen = 0;  ///< for each that it sees in local layers
  double most_seen = 0;       ///< tokens that are ever seen, in either

  double at(double seen, double local_seen) const {
    return fixed + per_seen * seen + per_local_seen * local_seen;
  }
  double most() const { return at(most_seen, most_seen); }
};

/// `tokens`: how many the op works on.
OpWork opWork(const Op& op, uint32_t tokens);

}  // namespace oriel
