// A fast 64-bit checksum. Not cryptographic: it detects damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace oriel_internal {

/// Continues `hash` over the bytes. Every step is a bijection of the state, so any single changed word
/// changes the result. Does not depend on alignment; words are little-endian.
inline uint64_t hashBytes(const void* data, uint64_t bytes, uint64_t hash = 0x9e3779b97f4a7c15ull) {
  constexpr uint64_t kOdd = 0xd6e8feb86659fd93ull;
  const uint8_t* at = static_cast<const uint8_t*>(data);
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  uint64_t tail = 0;
  if (bytes != 0) {
    std::memcpy(&tail, at, static_cast<size_t>(bytes));
  }
  mix(tail | bytes << 56);
  return hash;
}

/// A hash over parts of any length. Several times as fast as hashBytes() on large data. The result does not depend on
/// the parts' boundaries.
class StreamHash {
 public:
  explicit StreamHash(uint64_t seed) {
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      lanes_[lane] = seed + lane;
    }
  }

  void add(const void* data, uint64_t bytes) {
    const uint8_t* at = static_cast<const uint8_t*>(data);
    bytes_ += bytes;
    if (n_rest_ != 0) {
      const size_t taken =
          static_cast<size_t>(bytes < kStripeBytes - n_rest_ ? bytes : kStripeBytes - n_rest_);
      std::memcpy(rest_ + n_rest_, at, taken);
      n_rest_ += taken;
      at += taken;
      bytes -= taken;
      if (n_rest_ < kStripeBytes) {
        return;
      }
      mixStripes(rest_, 1);
      n_rest_ = 0;
    }
    mixStripes(at, bytes / kStripeBytes);
    n_rest_ = static_cast<size_t>(bytes % kStripeBytes);
    if (n_rest_ != 0) {
      std::memcpy(rest_, at + (bytes - n_rest_), n_rest_);
    }
  }

  uint64_t finish() const {
    uint64_t hash = hashBytes(lanes_, sizeof(lanes_));
    hash = hashBytes(rest_, n_rest_, hash);
    return hashBytes(&bytes_, sizeof(bytes_), hash);
  }

 private:
  static constexpr size_t kLanes =
      8;  // parallel lanes: one product need not wait for the previous one
  static constexpr size_t kStripeBytes = 8 * kLanes;

  void mixStripes(const uint8_t* at, uint64_t stripes) {
    constexpr uint64_t kOdd = 0xd6e8feb86659fd93ull;
    uint64_t lanes[kLanes];  // in registers
    std::memcpy(lanes, lanes_, sizeof(lanes));
    for (; stripes != 0; --stripes, at += kStripeBytes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        uint64_t word;
        std::memcpy(&word, at + 8 * lane, 8);
        lanes[lane] = (lanes[lane] ^ word) * kOdd;
        lanes[lane] ^= lanes[lane] >> 32;
      }
    }
    std::memcpy(lanes_, lanes, sizeof(lanes));
  }

  uint64_t lanes_[kLanes];
  uint8_t rest_[kStripeBytes] = {};
  size_t n_rest_ = 0;
  uint64_t bytes_ = 0;
};

// Overwrites sensitive data with zeros: text, token ids and everything computed from them.

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
