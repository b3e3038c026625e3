// Which ops of a list must wait for which.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

/// True if `later` must not run beside `earlier`: one writes what the other reads or writes.
bool mustWait(const Op& later, const Op& earlier);

/// Of two products: they have the same input, and the same piece for another form of it.
bool shareInput(const Op& a, const Op& b);

}  // namespace oriel_internal
