// ln(sum of exp(logits)), fast enough to score every position of a text.
#pragma once

#include <cstddef>

namespace cli {

/// For `count` >= 1 logits; NaN if one is NaN or the largest is infinite. Each exponential has a relative error of at
/// most 3e-7; the sum is in double.
double logSumExp(const float* logits, size_t count);

}  // namespace cli
