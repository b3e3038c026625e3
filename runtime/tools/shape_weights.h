// Bytes and work of the weights that a shape describes.
#pragma once

#include "budget/speed.h"
#include "plan/plan.h"
#include "tools/known_shapes.h"

namespace oriel_internal {

/// 0 when the weights are not known.
uint64_t shapeParameters(const ModelShape& shape);

/// Weights with every matrix in `type`, embeddings included, and every vector in f32, laid out as the plan of a file
/// does it; routers of experts are in f32, as published files have them. `wanted` is as in measureWeights. For a shape whose
/// weights are not known: none.
PlanTotals measureShape(const ModelShape& shape, WeightType type, const OnFile& wanted);

/// The work of a step as measureShape counts the matrices; not known where they are not. `model` must outlive it.
WorkShape workOf(const ModelShape& shape, const ModelDesc& model, WeightType type,
                 const OnFile& on_file = OnFile());

}  // namespace oriel_internal
