// Several sessions of one model that generate together.
#pragma once

#include "measure/bench_run.h"

namespace cli {

/// Reads the prompt (the first of `ids`) in each session, then decodes with one call. Returns tokens per second of all
/// together, counted from the last session's first token.
double runTogetherOnce(const Model& model, const BenchLoad& load, const std::vector<int32_t>& ids);

}  // namespace cli
