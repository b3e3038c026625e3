// ln(sum of exp(logits)), quick enough to score every position of a text.
#pragma once

#include <cstddef>

namespace cli {

/// Of `count` >= 1 logits; NaN where one of them is NaN or the largest is infinite. Each exponential has a relative error of
/// 3e-7 at most; the sum is in double.
double logSumExp(const float* logits, size_t count);

}  // namespace cli
