// A plan as a picture: window against memory for each format, and bytes by purpose.
#pragma once

#include <string>

#include "plan/plan_report.h"

namespace cli {

/// An SVG document. `options` are the options of `plan`. The curves ignore their fixed window and formats.
std::string plotPlan(const PlanSource& source, CommonOptions options, const oriel_speed* speed,
                     const Json& plan);

}  // namespace cli
