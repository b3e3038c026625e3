// Zeros over what nobody may find later: text, token ids and all that was computed from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace oriel_internal {

/// memset to zero that no compiler leaves out, although nothing reads the bytes afterwards.
inline void wipe(void* data, uint64_t bytes) {
  if (data == nullptr || bytes == 0) {
    return;
  }
#if defined(__GNUC__)
  std::memset(data, 0, static_cast<size_t>(bytes));
  __asm__ __volatile__("" : : "r"(data) : "memory");  // may read them, as far as the compiler knows
#else
  volatile uint8_t* at = static_cast<volatile uint8_t*>(data);
  for (uint64_t i = 0; i < bytes; ++i) {
    at[i] = 0;
  }
#endif
}

/// A plain struct on the stack whose place holds zeros afterwards.
template <typename T>
struct WipedCopy : T {
  WipedCopy() = default;
  WipedCopy(const T& other) : T(other) {}
  WipedCopy(const WipedCopy&) = default;
  WipedCopy& operator=(const WipedCopy&) = default;
  ~WipedCopy() { wipe(static_cast<T*>(this), sizeof(T)); }
};

/// An array on the stack whose place holds zeros afterwards: of ids, and of what is computed from them.
template <typename T, size_t N>
class WipedArray {
 public:
  WipedArray() = default;
  ~WipedArray() { wipe(items_, sizeof(items_)); }
  WipedArray(const WipedArray&) = delete;
  WipedArray& operator=(const WipedArray&) = delete;
  operator T*() { return items_; }

 private:
  T items_[N];
};

}  // namespace oriel_internal
