#include "cache_stretches.h"

#include <algorithm>

namespace desktop {

std::vector<CacheStretch> stretchesOf(const CacheState& cache) {
  std::vector<CacheStretch> list;
  const uint64_t sinks = cache.sinks_used;
  const uint64_t seen = std::max(cache.first_visible, sinks);
  if (sinks > 0) {
    list.push_back({CacheStretch::kSinks, 0, sinks, 0});
  }
  if (seen > sinks) {
    list.push_back({CacheStretch::kEvicted, sinks, std::min(seen, cache.position), 0});
  }
  // Tokens before the first turn count as a turn.
  std::vector<uint64_t> starts = {0};
  starts.insert(starts.end(), cache.turns.begin(), cache.turns.end());
  for (size_t i = 0; i < starts.size(); i++) {
    const uint64_t begin = std::max(starts[i], seen);
    const uint64_t end = i + 1 < starts.size() ? starts[i + 1] : cache.position;
    if (begin < end) {
      list.push_back({CacheStretch::kTurn, begin, end, i});
    }
  }
  return list;
}

}  // namespace desktop
