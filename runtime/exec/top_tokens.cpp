#include "exec/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace oriel_internal {
namespace {

constexpr uint32_t kSign = 1u << 31;

bool better(const TopToken& a, const TopToken& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

}  // namespace

uint32_t topKey(float logit) {
  if (!(logit > -INFINITY)) {
    return 0;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &logit, sizeof(bits));
  if (bits == kSign) {
    return kSign;  // minus zero
  }
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

void topBlocks(const float* logits, const TopPush& push, uint32_t* keys) {
  float most[kMaxTopBlocks];
  std::fill_n(most, push.blocks, -INFINITY);
  for (uint32_t first = 0; first < push.n_vocab; first += push.blocks) {
    const uint32_t n = std::min(push.blocks, push.n_vocab - first);
    for (uint32_t i = 0; i < n; ++i) {
      const float logit = logits[first + i];
      most[i] = logit > most[i] ? logit : most[i];  // false for a NaN
    }
  }
  for (uint32_t i = 0; i < push.blocks; ++i) {
    keys[i] = topKey(most[i]);
  }
}

// `least` is the lowest of the kTopCapacity highest block maxima. At least kTopCapacity logits reach it, so lower
// logits are not among the best tokens.
void topTokens(const float* logits, const TopPush& push, const uint32_t* keys, TopTokens* top) {
  uint32_t sorted[kMaxTopBlocks];
  const uint32_t blocks = static_cast<uint32_t>(
      std::copy_if(keys, keys + push.blocks, sorted, [](uint32_t key) { return key != 0; }) -
      sorted);
  uint32_t least = 1;
  if (blocks > kTopCapacity) {
    std::nth_element(sorted, sorted + kTopCapacity - 1, sorted + blocks,
                     [](uint32_t a, uint32_t b) { return a > b; });
    least = sorted[kTopCapacity - 1];
  }
  TopToken found[2 * kTopCapacity];
  uint32_t n = 0;
  bool dropped = least > 1;
  const auto keepTheBest = [&] {
    if (n > kTopCapacity) {
      std::nth_element(found, found + kTopCapacity - 1, found + n, better);
      n = kTopCapacity;
      dropped = true;
    }
  };
  for (uint32_t block = 0; block < push.blocks; ++block) {
    if (keys[block] < least) {
      continue;
    }
    for (uint32_t id = block; id < push.n_vocab; id += push.blocks) {
      if (topKey(logits[id]) >= least) {
        if (n == 2 * kTopCapacity) {
          keepTheBest();
          least = topKey(found[kTopCapacity - 1].logit);
        }
        found[n++] = {logits[id], id};
      }
    }
  }
  keepTheBest();
  std::sort(found, found + n, better);
  *top = TopTokens();
  top->count = n;
  top->all = dropped ? 0 : 1;
  std::copy_n(found, n, top->best);
}

}  // namespace oriel_internal
