// Several sessions of one model that generate at the same time.
#pragma once

#include "measure/bench_run.h"

namespace cli {

/// The prompt (the first of `ids`) in each of the model's sessions, then decoding by one call: tokens a second of all
/// together, from when each has its first token.
double runTogetherOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids);

}  // namespace cli
