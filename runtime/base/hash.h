// A fast 64-bit checksum. Not cryptographic: it detects damage, not malice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace oriel {

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

}  // namespace oriel
