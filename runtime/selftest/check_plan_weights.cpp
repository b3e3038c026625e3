#include <cstdio>

#include "plan/codebooks.h"
#include "plan/weight_placement.h"
#include "selftest/check_plan.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kExperts = 4;
constexpr uint32_t kExpertsHeld = 3;  // in the stack: row groups of a matrix
constexpr uint32_t kExpertsUsed = 2;
constexpr uint32_t kExpertRows = 13;
constexpr uint32_t kRoutes = kChunk * kExpertsUsed;
// tried for each type and use; the executor knows how many exist
constexpr uint8_t kCandidates = 8;

}  // namespace

// Two experts for each token, chosen by the first words of its row.
BufferRef CheckPlan::addRoutes(StepList list) {
  const BufferRef routes =
      take(ArenaKind::kActivations, uint64_t{kRouteParts} * kRoutes + kExperts + 1);
  add(list, OpKind::kRoute, RoutePush{kExperts, kExpertsUsed, kCols, kRoutes, 0, 1, 0, 1},
      {in_, routes});
  add(list, OpKind::kSortRoutes, SortRoutesPush{kExperts, kExpertsUsed, kRoutes}, {routes, routes});
  return routes;
}

void CheckPlan::addExperts() {
  const BufferRef bias = vector(kExperts);
  for (const StepList list : kLists) {
    const BufferRef routes = addRoutes(list);
    const auto part = [&](uint32_t first, uint64_t words) {
      return BufferRef(routes.arena, routes.segment, routes.offset_bytes + 4ull * first, 4 * words);
    };
    expect(list, "route", part(0, kRoutes), 0)->words = true;
    expect(list, "route (weights)", part(kRoutes, kRoutes), kFloatLimit);
    expect(list, "sort_routes", part(2 * kRoutes, 2ull * kRoutes + kExperts + 1), 0)->words = true;

    const BufferRef biased = take(ArenaKind::kActivations, 2ull * kRoutes);
    add(list, OpKind::kRoute, RoutePush{kExperts, kExpertsUsed, kCols, kRoutes, 1, 0, 1, 1},
        {in_, biased, bias});
    expect(list, "route (sigmoid)", biased, kFloatLimit);

    constexpr uint32_t kHalf = kCols / 2;  // as many rows as routes
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kHalf);
    add(list, OpKind::kExpertCombine, ExpertCombinePush{kHalf, kExpertsUsed, kRoutes, kHalf, kHalf},
        {in_, out, routes});
    expect(list, "expert_combine", out, kFloatLimit);
    RoutePush grouped = {kExperts, kExpertsUsed, kCols, kRoutes, 1, 1, 1, 1, 2, 1};
    const BufferRef in_groups = take(ArenaKind::kActivations, 2ull * kRoutes);
    add(list, OpKind::kRoute, grouped, {in_, in_groups, bias});
    expect(list, "route (groups)", in_groups, kFloatLimit);
    const BufferRef changed = take(ArenaKind::kActivations, kRoutes * kExperts);
    for (const uint32_t change : {kChangeAdd, kChangeTimes}) {
      add(list, OpKind::kExpertBias, ExpertBiasPush{1, kExpertsUsed, kRoutes, kExperts, 1, change},
          {bias, changed, routes});
    }
    expect(list, "expert_bias", changed, kFloatLimit);
  }
}

// The matrix as a stack of smaller ones, for all experts except the last.
void CheckPlan::addExpertProduct(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  ExpertMatmulPush push = {};
  push.rows = kExpertRows;
  geometry.describe(&push);
  push.in_stride = kCols;
  push.out_stride = kExpertRows;
  push.n_experts = kExperts;
  push.n_used = kExpertsUsed;
  push.routes = kRoutes;
  push.of_tokens = 1;
  push.count = kExpertsHeld;
  char name[32];
  std::snprintf(name, sizeof(name), "expert_matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    BufferRef* const routes = &routes_[list == StepList::kChunk ? 1 : 0];
    if (routes->size_bytes == 0) {
      *routes = addRoutes(list);
    }
    const BufferRef out = take(ArenaKind::kActivations, kRoutes * kExpertRows);
    add(list, OpKind::kExpertMatmul, push, {weights, out, in_, *routes})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

// The matrix as a stack for three heads with the same input.
void CheckPlan::addHeadProduct(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  constexpr uint32_t kHeadRows = kExpertRows;
  const uint32_t stride = kExpertsHeld * kHeadRows;
  const HeadMatmulPush push = {kHeadRows,
                               geometry.units,
                               geometry.groupWords(),
                               geometry.sideWord(),
                               kCols,
                               0,
                               stride,
                               kHeadRows,
                               0,
                               0,
                               kExpertsHeld};
  char name[32];
  std::snprintf(name, sizeof(name), "head_matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * stride);
    add(list, OpKind::kHeadMatmul, push, {weights, out, in_})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

void CheckPlan::addMatrix(WeightType type) {
  const BufferRef weights = matrix(type);
  addEmbed(type, weights);
  addProduct(type, weights, kCandidates);
  addExpertProduct(type, weights);
  addHeadProduct(type, weights);
}

void CheckPlan::addEmbed(WeightType type, const BufferRef& weights) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  char name[32];
  const EmbedPush embed = {
      kCols, geometry.groupWords(), geometry.sideWord(), 0, kRows, kCols, 1.5f, 0, 0};
  std::snprintf(name, sizeof(name), "embed_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    const BufferRef out = take(ArenaKind::kActivations, kChunk * kCols);
    add(list, OpKind::kEmbed, embed, {weights, out})->weights = type;
    expect(list, name, out, kFloatLimit);
  }
}

// `candidates`: number to try; 0: the executor's choice.
void CheckPlan::addProduct(WeightType type, const BufferRef& weights, uint8_t candidates) {
  const WeightGeometry geometry = weightGeometry(type, kCols);
  MatmulPush push = {};
  push.rows = kRows;
  geometry.describe(&push);
  push.in_stride = kCols;
  push.out_stride = kRows;
  char name[32];
  std::snprintf(name, sizeof(name), "matmul_%s", weightTypeName(type));
  for (const StepList list : kLists) {
    for (uint8_t candidate = candidates != 0 ? 1 : 0; candidate <= candidates; ++candidate) {
      const BufferRef out = take(ArenaKind::kActivations, kChunk * kRows);
      Op* const op = add(list, OpKind::kMatmul, push, {weights, out, in_, staged_});
      op->weights = type;
      op->candidate = candidate;
      Check* const check = expect(list, name, out, kFloatLimit);
      check->weights = type;
      check->candidate = candidates != 0 ? candidate : kChosenCandidate;
    }
  }
  if (candidates == 0 && plan_.n_ops[static_cast<uint32_t>(StepList::kDecode)] < kMaxOps / 2) {
    addMadeProducts(type, weights, push);
  }
}

// A norm and an activation, each followed by a product. Only the product's result is compared, because a device may
// leave the norm or the activation to the product.
void CheckPlan::addMadeProducts(WeightType type, const BufferRef& weights, const MatmulPush& push) {
  if (norm_.size_bytes == 0) {
    norm_ = vector(kCols);
  }
  char name[48];
  for (const bool normed : {true, false}) {
    const BufferRef row = take(ArenaKind::kActivations, kCols);
    const BufferRef out = take(ArenaKind::kActivations, kRows);
    if (normed) {
      add(StepList::kDecode, OpKind::kRmsNorm,
          RmsNormPush{kCols, kCols, kCols, 0, 1e-5f, 1, 0, 0, 0, 1.0f, 0}, {in_, row, norm_});
    } else {
      add(StepList::kDecode, OpKind::kGatedActivation,
          GatedActivationPush{kCols, 2 * kCols, 0, kCols, kCols, kSilu, 1}, {in_, row});
    }
    add(StepList::kDecode, OpKind::kMatmul, push, {weights, out, row, staged_})->weights = type;
    std::snprintf(name, sizeof(name), "matmul_%s of %s", weightTypeName(type),
                  normed ? "a norm" : "an activation");
    expect(StepList::kDecode, name, out, kFloatLimit);
  }
}

}  // namespace oriel_internal
