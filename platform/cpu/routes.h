// The experts of each token, and the order of each expert's tokens.
#pragma once

#include "plan/plan.h"

namespace oriel_internal {

/// The parts of a buffer with room for `capacity` routes (shaders/shared/layout.h).
struct Routes {
  Routes(uint32_t* words, uint32_t capacity)
      : expert(words),
        weight(reinterpret_cast<float*>(words + capacity)),
        place(words + 2ull * capacity),
        route_at(words + 3ull * capacity),
        begin(words + 4ull * capacity) {}

  uint32_t* expert;    ///< by route
  float* weight;       ///< by route
  uint32_t* place;     ///< by route
  uint32_t* route_at;  ///< by place
  uint32_t* begin;     ///< by expert, followed by the end of the last
};
static_assert(kRouteParts == 4, "as many before the beginnings");

/// Computes the routes of token `t` from its values `in`; `bias` may be null.
void routeToken(const RoutePush& push, const float* in, const float* bias, uint32_t t,
                const Routes& routes);

/// Sorts the routes of `n_tokens` tokens by expert, then by number.
void sortRoutes(const SortRoutesPush& push, uint32_t n_tokens, const Routes& routes);

}  // namespace oriel_internal
