// Bytes and work of a shape's weights.
#pragma once

#include "budget/speed.h"
#include "plan/plan.h"
#include "tools/known_shapes.h"

namespace oriel_internal {

/// 0 if the weights are unknown.
uint64_t shapeParameters(const ModelShape& shape);

/// Weights with every matrix in `type`, including embeddings, and every vector in f32, laid out as in the plan of a
/// file. Expert routers are f32, as in published files. `wanted` as in measureWeights. Empty for a shape with unknown
/// weights.
PlanTotals measureShape(const ModelShape& shape, WeightType type, const OnFile& wanted);

/// The work of a step, with the matrices of measureShape; unknown if they are. `model` must outlive it.
WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type,
                 const OnFile& on_file = OnFile());

}  // namespace oriel_internal
