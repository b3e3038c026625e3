// A plan as text: bytes by purpose, the choice, and why the alternatives lost.
#pragma once

#include <oriel/tools.h>

#include <string>
#include <vector>

#include "output.h"
#include "plan/plan_source.h"

namespace cli {

/// Plans for half, three quarters, one and a half times and twice the memory.
std::vector<Json> neighboursOf(const PlanSource& source, const oriel::Options& options,
                               const Json& plan);

/// `load`: the plan's options. `speed` null: no device was named. `neighbours` adds the windows and losses of the
/// alternatives.
std::string describePlan(const PlanSource& source, const Settings& load, const oriel_speed* speed,
                         const Json& plan, const std::vector<Json>* neighbours);
Json planJson(const PlanSource& source, const Json& plan, const oriel_speed* speed,
              const std::vector<Json>& neighbours);

/// The table of `oriel plan --list`.
std::string describeShapes(const Json& shapes);
Json shapesJson(const Json& shapes);

}  // namespace cli
