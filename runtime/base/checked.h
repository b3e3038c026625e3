// Arithmetic on sizes that may come from a file: overflow is a value, not a surprise.
#pragma once

#include <cstdint>

namespace oriel {

/// False when a + b does not fit 64 bits.
[[nodiscard]] inline bool checkedAdd(uint64_t a, uint64_t b, uint64_t* sum) {
  *sum = a + b;
  return *sum >= a;
}

/// False when a * b does not fit 64 bits.
[[nodiscard]] inline bool checkedMul(uint64_t a, uint64_t b, uint64_t* product) {
  *product = a * b;
  return a == 0 || *product / a == b;
}

/// `alignment` is a power of two; the caller knows that value + alignment fits.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

constexpr uint64_t ceilDiv(uint64_t value, uint64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace oriel
