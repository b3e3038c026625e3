// A plan in words: bytes by purpose, the choice, and why everything else lost.
#pragma once

#include <oriel/tools.h>

#include <string>
#include <vector>

#include "output.h"
#include "plan/plan_source.h"

namespace cli {

/// What half, three quarters, one and a half times and twice the memory would be used for.
struct Neighbour {
  uint64_t memory_bytes = 0;
  oriel_plan plan = {};
};
std::vector<Neighbour> neighboursOf(const PlanSource& source, const oriel_options& options,
                                    const oriel_plan& plan);

std::string describePlan(const PlanSource& source, const oriel_options& options,
                         const oriel_plan& plan, const std::vector<Neighbour>& neighbours);
/// `speed` null: no device was named.
Json planJson(const PlanSource& source, const oriel_plan& plan, const oriel_speed* speed,
              const std::vector<Neighbour>& neighbours);

/// The table of `oriel plan --list`.
std::vector<oriel_shape_info> knownShapes();
std::string describeShapes(const std::vector<oriel_shape_info>& shapes);
Json shapesJson(const std::vector<oriel_shape_info>& shapes);

}  // namespace cli
