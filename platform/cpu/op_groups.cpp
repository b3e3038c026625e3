#include "cpu/cpu_executor.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "cpu/kernels.h"

namespace oriel_internal {
namespace {

// True if both read the same vectors, or with float weights columns of the same rows.
bool readTogether(const Op& op, const Op& next) {
  const BufferRef& a = op.bindings[kMatmulInput];
  const BufferRef& b = next.bindings[kMatmulInput];
  return samePlace(a, b) ||
         (readsFloats(op.weights) && readsFloats(next.weights) && a.arena == b.arena &&
          a.segment == b.segment && a.offset_bytes < b.offset_bytes &&
          a.offset_bytes + a.size_bytes == b.offset_bytes + b.size_bytes);
}

// True if they read together and do not write each other's inputs or outputs.
bool goTogether(const Op& op, const Op& next) {
  if (next.kind != OpKind::kMatmul || next.push.matmul.of_outputs != op.push.matmul.of_outputs ||
      !readTogether(op, next) || samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput])) {
    return false;
  }
  return !samePlace(next.bindings[kOpOut], op.bindings[kOpOut]) ||
         opTraits(next.kind).columns(next).first >= opTraits(op.kind).columns(op).end;
}

bool readSameExpertInputs(const Op& op, const Op& next) {
  return next.kind == OpKind::kExpertMatmul &&
         samePlace(next.bindings[kMatmulInput], op.bindings[kMatmulInput]) &&
         next.push.expert_matmul.of_tokens == op.push.expert_matmul.of_tokens;
}

// Stacks come in the order of their columns, then of their experts.
bool expertsGoTogether(const Op& op, const Op& next) {
  if (!readSameExpertInputs(op, next) || readsFloats(next.weights) != readsFloats(op.weights) ||
      !samePlace(next.bindings[kExpertRoutes], op.bindings[kExpertRoutes]) ||
      samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput]) ||
      !samePlace(next.bindings[kOpOut], op.bindings[kOpOut])) {
    return false;
  }
  const ExpertMatmulPush& a = op.push.expert_matmul;
  const ExpertMatmulPush& b = next.push.expert_matmul;
  if (a.units != b.units || a.n_experts != b.n_experts || a.has_slots != b.has_slots) {
    return false;
  }
  return b.out_first >= a.out_first + a.rows ||
         (b.out_first == a.out_first && b.rows == a.rows && b.first >= a.first + a.count);
}

}  // namespace

bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows) {
  const Op& op = ops[n];
  return rows == 1 && n + 1 < n_ops && ops[n + 1].kind == OpKind::kMatmul &&
         samePlace(op.bindings[kOpOut], ops[n + 1].bindings[kMatmulInput]) &&
         opTraits(op.kind).makes_row(op);
}

uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first) {
  uint32_t end = first + 1;
  while (end < n_ops && goTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most) {
  uint32_t end = first + 1;
  while (end < n_ops && end - first < most && expertsGoTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most) {
  const Op& op = ops[n];
  if (op.kind != OpKind::kGatedActivation || n + 1 >= n_ops ||
      ops[n + 1].kind != OpKind::kExpertMatmul) {
    return false;
  }
  const Op& next = ops[n + 1];
  const GatedActivationPush& made = op.push.gated_activation;
  const ExpertMatmulPush& read = next.push.expert_matmul;
  if (readsFloats(next.weights) || read.of_tokens != 0 || made.rows_per_token != read.n_used ||
      made.out_stride != read.in_stride ||
      !samePlace(op.bindings[kOpOut], next.bindings[kMatmulInput])) {
    return false;
  }
  const uint32_t end = endOfExperts(ops, n_ops, n + 1, most);
  return end == n_ops || !readSameExpertInputs(next, ops[end]);
}

namespace {

// In double, so that the choice between two close experts depends on the inputs only.
void scoresOf(const RoutePush& p, const float* in, double* scores) {
  if (p.sigmoid != 0) {
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      scores[e] = 1.0 / (1.0 + std::exp(-static_cast<double>(in[e])));
    }
    return;
  }
  const double most = static_cast<double>(*std::max_element(in, in + p.n_experts));
  double sum = 0;
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    scores[e] = std::exp(static_cast<double>(in[e]) - most);
    sum += scores[e];
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    scores[e] /= sum;
  }
}

// Excludes experts outside the best groups.
void leaveGroups(const RoutePush& p, double* values) {
  const uint32_t size = p.n_experts / p.groups;
  double groups[kMaxExpertGroups];
  for (uint32_t g = 0; g < p.groups; ++g) {
    double best[2] = {-HUGE_VAL, -HUGE_VAL};
    for (uint32_t e = g * size; e < (g + 1) * size; ++e) {
      best[1] = std::max(best[1], std::min(best[0], values[e]));
      best[0] = std::max(best[0], values[e]);
    }
    groups[g] = best[0] + (size > 1 ? best[1] : 0);
  }
  bool stays[kMaxExpertGroups] = {};
  for (uint32_t k = 0; k < p.used_groups; ++k) {
    const auto best = std::max_element(groups, groups + p.groups) - groups;
    stays[best] = true;
    groups[best] = -HUGE_VAL;
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    values[e] = stays[e / size] ? values[e] : -HUGE_VAL;
  }
}

}  // namespace

void routeToken(const RoutePush& p, const float* in, const float* bias, uint32_t t,
                const Routes& routes) {
  double scores[kMaxExperts];
  double values[kMaxExperts];  // selection scores; -inf: already chosen
  scoresOf(p, in, scores);
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    values[e] = scores[e] + (bias != nullptr ? static_cast<double>(bias[e]) : 0.0);
  }
  if (p.groups > 1) {
    leaveGroups(p, values);
  }
  const uint64_t first = uint64_t{t} * p.n_used;
  double sum = 0;
  for (uint32_t k = 0; k < p.n_used; ++k) {
    const uint32_t best =
        static_cast<uint32_t>(std::max_element(values, values + p.n_experts) - values);
    routes.expert[first + k] = best;
    routes.weight[first + k] = static_cast<float>(scores[best]);
    sum += scores[best];
    values[best] = -HUGE_VAL;
  }
  const float divisor = p.normalised != 0
                            ? static_cast<float>(std::max(sum, static_cast<double>(kLeastRouteSum)))
                            : 1.0f;
  for (uint32_t k = 0; k < p.n_used; ++k) {
    routes.weight[first + k] = routes.weight[first + k] / divisor * p.scale;
  }
}

void sortRoutes(const SortRoutesPush& p, uint32_t n_tokens, const Routes& routes) {
  const uint32_t n = n_tokens * p.n_used;
  uint32_t* const begin = routes.begin;
  std::fill(begin, begin + p.n_experts + 1, 0u);
  for (uint32_t r = 0; r < n; ++r) {
    ++begin[routes.expert[r] + 1];
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    begin[e + 1] += begin[e];
  }
  // begin[e] advances through its places; afterwards each equals the beginning of the next.
  for (uint32_t r = 0; r < n; ++r) {
    const uint32_t place = begin[routes.expert[r]]++;
    routes.place[r] = place;
    routes.route_at[place] = r;
  }
  for (uint32_t e = p.n_experts; e > 0; --e) {
    begin[e] = begin[e - 1];
  }
  begin[0] = 0;
}

}  // namespace oriel_internal
