// Which ops of a list follow each other without a wait in between; decided from the ops alone.
#pragma once

#include "plan/plan.h"

namespace oriel {

/// Too little work to share out when there is one token.
bool isSmall(const Op& op);

/// Works on one row whatever the number of tokens.
bool ofOneRow(const Op& op);

/// Op `n` of a list makes, of one token, the vector that the product after it reads, and changes
/// nothing else: so every thread can make one for itself.
bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t n_tokens);

/// The number of the op behind the products from `first` on that read the same vectors, and each of
/// which writes nothing that the one before reads or writes.
uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first);

}  // namespace oriel
