// DRY: tokens that would repeat a sequence of the context become less likely.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "exec/sampler.h"

namespace oriel_internal {

void Sampler::copyBreakers(const DryOptions& options) {
  n_breakers_ = 0;
  for (uint32_t i = 0; options.text_of != nullptr && i < options.n_breakers; ++i) {
    Breaker& breaker = breakers_[n_breakers_++];
    breaker.bytes = static_cast<uint32_t>(std::strlen(options.breakers[i]));
    std::memcpy(breaker.text, options.breakers[i], breaker.bytes);
  }
  options_.dry.breakers = nullptr;  // owned by the caller
}

/// Number of tokens after the last breaker, among the last `n` tokens. A breaker may begin in one token and end in
/// another.
uint32_t Sampler::unbrokenTokens(uint32_t n) const {
  if (n_breakers_ == 0) {
    return n;
  }
  constexpr uint32_t kMost = DryOptions::kMostBreakerBytes;
  char last[kMost] = {};  // latest bytes, in order
  uint32_t begun = 0;     // bytes in `last`
  uint32_t unbroken = 0;
  for (uint32_t i = n; i > 0; --i) {
    const TokenText text = options_.dry.text_of(recent(i - 1), options_.dry.text_user);
    bool breaks = false;
    for (size_t k = 0; k < text.bytes; ++k) {
      std::memmove(last, last + 1, kMost - 1);
      last[kMost - 1] = text.data[k];
      begun = std::min(begun + 1, kMost);
      for (uint32_t b = 0; b < n_breakers_ && !breaks; ++b) {
        const Breaker& breaker = breakers_[b];
        breaks = breaker.bytes <= begun &&
                 std::memcmp(last + kMost - breaker.bytes, breaker.text, breaker.bytes) == 0;
      }
    }
    unbroken = breaks ? 0 : unbroken + 1;
  }
  wipe(last, sizeof(last));
  return unbroken;
}

// At most 256 * 256 / 2 comparisons.
void Sampler::repeatedLengths(uint32_t* lengths, uint32_t n) const {
  std::fill_n(lengths, n, 0u);
  const uint32_t most = unbrokenTokens(n);
  for (uint32_t at = 1; at < n; ++at) {
    uint32_t length = 0;
    while (length < most && at + length < n && recent(at + length) == recent(length)) {
      ++length;
    }
    lengths[at - 1] = length;  // recent(at - 1) came after recent(at)
  }
}

float Sampler::dryPenalty(uint32_t length) const {
  const DryOptions& dry = options_.dry;
  if (length == 0 || length < dry.allowed_length) {
    return 0.0f;
  }
  const double power = std::pow(static_cast<double>(dry.base), length - dry.allowed_length);
  return static_cast<float>(
      std::min(dry.multiplier * power, static_cast<double>(std::numeric_limits<float>::max())));
}

}  // namespace oriel_internal
