// Which ops of a list follow each other without a wait in between; decided from the ops alone.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

/// Op `n` of a list makes, of one row, the vector that the product after it reads, and changes nothing else:
/// so every thread can make one for itself. `rows`: that the list works on.
bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows);

/// The number of the op behind the products from `first` on that read the same vectors, and each of
/// which writes nothing that the one before reads or writes.
uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first);

/// The number of the op behind the products of experts from `first` on that read the same vectors by the same routes;
/// `most` of them go together.
uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most);

/// Op `n` of a list makes what the products of experts after it read, of quantised weights, and nobody else does: so
/// it can be made where it is put into another form.
bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most);

}  // namespace oriel_internal
