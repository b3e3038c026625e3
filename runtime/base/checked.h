// Arithmetic on sizes that may come from a file: overflow is a value, not a surprise.
#pragma once

#include <cstdint>

namespace oriel_internal {

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

/// The same with signs. Where it is false the result is what wrapping around gives.
[[nodiscard]] inline bool checkedSignedAdd(int64_t a, int64_t b, int64_t* sum) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return (b < 0) == (*sum < a);
}
[[nodiscard]] inline bool checkedSignedSub(int64_t a, int64_t b, int64_t* difference) {
  *difference = static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  return (b > 0) == (*difference < a);
}
[[nodiscard]] inline bool checkedSignedMul(int64_t a, int64_t b, int64_t* product) {
  *product = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  if (a == -1) {  // by which the smallest number cannot be divided
    return b != INT64_MIN;
  }
  return a == 0 || *product / a == b;
}

/// `alignment` is a power of two; the caller knows that value + alignment fits.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

constexpr uint64_t ceilDiv(uint64_t value, uint64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace oriel_internal
