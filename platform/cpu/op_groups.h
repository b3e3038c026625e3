// Ops of a list that can run without synchronisation between them, decided from the ops alone.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

/// True if op `n` computes the one-row input of the next product and has no other effect. Every thread can then
/// compute its own copy. `rows`: rows of the list.
bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows);

/// Index of the first op after a run of products, starting at `first`, that read the same vectors, or later columns of
/// the same rows. Each of them writes no piece that the previous one reads or writes.
uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first);

/// Index of the first op after a run of expert products, starting at `first`, with the same input vectors and routes;
/// at most `most` of them.
uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most);

/// True if op `n` computes the input of the following expert products with quantised weights, and other ops do not read
/// it. The result can then be computed directly in its staged form.
bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most);

}  // namespace oriel_internal
