// Arithmetic on sizes that may come from a file. Overflow is reported, not undefined.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// False if a + b exceeds 64 bits.
[[nodiscard]] inline bool checkedAdd(uint64_t a, uint64_t b, uint64_t* sum) {
  *sum = a + b;
  return *sum >= a;
}

/// False if a * b exceeds 64 bits.
[[nodiscard]] inline bool checkedMul(uint64_t a, uint64_t b, uint64_t* product) {
  *product = a * b;
  return a == 0 || *product / a == b;
}

/// The same for signed numbers. When false, the result is wrapped.
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
  if (a == -1) {  // the quotient of the smallest number would overflow
    return b != INT64_MIN;
  }
  return a == 0 || *product / a == b;
}

/// `alignment` is a power of two; value + alignment must fit.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

constexpr uint64_t ceilDiv(uint64_t value, uint64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace oriel_internal
