// The codebooks of plan/codebooks.h in the layout for vector instructions: one word per entry, its codes in bytes.
#pragma once

#include <cstdint>

#include "plan/codebooks.h"

namespace oriel_internal {

template <uint32_t kEntries>
struct Codebook {
  uint32_t words[kEntries] = {};

  constexpr explicit Codebook(const uint32_t (&pairs)[kEntries / 2], bool eights) {
    for (uint32_t e = 0; e < kEntries; ++e) {
      const uint32_t codes = pairs[e / 2] >> (16 * (e % 2));
      for (uint32_t i = 0; i < 4; ++i) {
        words[e] |= eights ? (codes >> (2 * i) & 3) << (8 * i) | (codes >> (8 + 2 * i) & 3)
                                                                     << (8 * i + 2)
                           : (codes >> (3 * i) & 7) << (8 * i);
      }
    }
  }
};

/// Codebooks of eight values: byte i has the code of value i in bits 0 and 1, and of value 4 + i in bits 2 and 3.
constexpr Codebook<256> kIq2XxsBook(kIq2XxsGrid, true);
constexpr Codebook<512> kIq2XsBook(kIq2XsGrid, true);
constexpr Codebook<1024> kIq2SBook(kIq2SGrid, true);
/// Codebooks of four values: byte i has the code of value i.
constexpr Codebook<256> kIq3XxsBook(kIq3XxsGrid, false);
constexpr Codebook<512> kIq3SBook(kIq3SGrid, false);

}  // namespace oriel_internal
