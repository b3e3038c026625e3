// Reads .xz files in memory. Supports only the subset that Oriel's own packer writes. Damaged contents are refused.
// https://tukaani.org/xz/xz-file-format.txt
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Working memory of unpackXz(). Holds nothing between two calls.
struct XzWork {
  /// The literal probabilities come last: one set for each of at most 1 << 4 contexts.
  static constexpr size_t kProbabilities = 1984 + (0x300u << 4);

  uint16_t probabilities[kProbabilities];
  uint64_t crc64[256];
};

/// Unpacks one stream with one block, compressed with LZMA2 only, checked by CRC64 and exactly `out_bytes` long. `out`
/// serves as the dictionary, so any dictionary size works. Returns false if `in` has another form, is truncated or
/// damaged; the contents of `out` are then undefined. Never reads outside `in` or writes outside `out`. The index and
/// footer after the block are not read.
[[nodiscard]] bool unpackXz(const uint8_t* in, size_t in_bytes, uint8_t* out, size_t out_bytes,
                            XzWork* work);

}  // namespace oriel_internal
