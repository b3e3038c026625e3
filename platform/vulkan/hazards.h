// Dependencies between the ops of a list.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

/// True if `later` must not run concurrently with `earlier`: one writes a piece that the other reads or writes.
bool mustWait(const Op& later, const Op& earlier);

/// True if two products have the same input and the same staging piece.
bool shareInput(const Op& a, const Op& b);

}  // namespace oriel_internal
