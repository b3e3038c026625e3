// Reads .xz files that lie in memory: as much of the format as one compressor needs who is known, and none of its
// exceptions. Contents that were damaged are refused. https://tukaani.org/xz/xz-file-format.txt
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// What unpackXz() works with; holds nothing between two calls.
struct XzWork {
  /// Of a byte as literal, a set for each of 1 << 4 kinds of places at most, behind all others.
  static constexpr size_t kProbabilities = 1984 + (0x300u << 4);

  uint16_t probabilities[kProbabilities];
  uint64_t crc64[256];
};

/// Unpacks one stream of one block, compressed with LZMA2 alone and checked by CRC64, of exactly `out_bytes`. `out` is
/// all the history that is kept, so a stream may ask for a dictionary of any size. False: `in` is not that, truncated or
/// damaged; then anything may be in `out`. Reads nothing outside `in`, writes nothing outside `out`. What lies behind
/// the block (index and footer) is not read.
[[nodiscard]] bool unpackXz(const uint8_t* in, size_t in_bytes, uint8_t* out, size_t out_bytes,
                            XzWork* work);

}  // namespace oriel_internal
