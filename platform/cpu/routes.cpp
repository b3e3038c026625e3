#include "cpu/routes.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace oriel_internal {
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
