// A plan in words: bytes by purpose, the choice, and why everything else lost.
#pragma once

#include <oriel/tools.h>

#include <string>
#include <vector>

#include "output.h"
#include "plan/plan_source.h"

namespace cli {

/// What half, three quarters, one and a half times and twice the memory would be used for: plans.
std::vector<Json> neighboursOf(const PlanSource& source, const oriel::Options& options,
                               const Json& plan);

/// `load` are the options that the plan was made with. `speed` null: no device was named. With `neighbours` also why: what
/// everything else would hold and lose.
std::string describePlan(const PlanSource& source, const Settings& load, const oriel_speed* speed,
                         const Json& plan, const std::vector<Json>* neighbours);
Json planJson(const PlanSource& source, const Json& plan, const oriel_speed* speed,
              const std::vector<Json>& neighbours);

/// The table of `oriel plan --list`.
std::string describeShapes(const Json& shapes);
Json shapesJson(const Json& shapes);

}  // namespace cli
