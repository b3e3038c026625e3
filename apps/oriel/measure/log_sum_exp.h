// ln(sum of exp(logits)), quick enough to score every position of a text.
#pragma once

#include <cstddef>

namespace cli {

/// Of `count` >= 1 finite logits. Each exponential has a relative error of 3e-7 at most; the sum is in double.
double logSumExp(const float* logits, size_t count);

}  // namespace cli
