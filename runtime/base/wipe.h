// Overwrites sensitive data with zeros: text, token ids and everything computed from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace oriel_internal {

/// A memset to zero that compilers cannot remove, although the bytes are not read afterwards.
inline void wipe(void* data, uint64_t bytes) {
  if (data == nullptr || bytes == 0) {
    return;
  }
#if defined(__GNUC__)
  std::memset(data, 0, static_cast<size_t>(bytes));
  __asm__ __volatile__("" : : "r"(data) : "memory");  // the compiler must assume a read
#else
  volatile uint8_t* at = static_cast<volatile uint8_t*>(data);
  for (uint64_t i = 0; i < bytes; ++i) {
    at[i] = 0;
  }
#endif
}

/// A plain struct on the stack that is zeroed at the end of its scope.
template <typename T>
struct WipedCopy : T {
  WipedCopy() = default;
  WipedCopy(const T& other) : T(other) {}
  WipedCopy(const WipedCopy&) = default;
  WipedCopy& operator=(const WipedCopy&) = default;
  ~WipedCopy() { wipe(static_cast<T*>(this), sizeof(T)); }
};

/// An array on the stack that is zeroed at the end of its scope: ids and values computed from them.
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
