// Repacks a file's blocks to the device's groups of rows (shaders/shared/layout.h). Lossless.
#pragma once

#include <cstdint>
#include <cstring>

#include "plan/plan.h"
#include "plan/weight_placement.h"

namespace oriel_internal {

// Lossless repacking of a file's blocks to the device's groups of rows (shaders/shared/layout.h).

/// Repacks `rows` rows from the type's file format to rows first_row, first_row + 1, ... of the groups at `groups`.
/// Writes only these rows, so that several tensors can share a group.
void repackRows(WeightType type, const uint8_t* source, uint32_t rows, uint32_t cols,
                uint32_t first_row, uint32_t* groups);

/// Writes zeros to rows first_row .. first_row + rows - 1, to fill up a slice's last group.
void clearRows(WeightType type, uint32_t rows, uint32_t cols, uint32_t first_row, uint32_t* groups);

/// Converts a vector of any float type to float32, padded with zeros to paddedCols(cols).
void repackVector(uint32_t file_type, const uint8_t* source, uint32_t cols, float* values);

// Rows of one group: the building blocks of repacking. Only for plan/repack*.cpp.

inline uint32_t readU16(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline uint32_t readU32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

struct GroupRows {
  const uint8_t* source;  ///< first byte of row `begin`
  uint64_t row_bytes;     ///< in the file
  uint32_t begin, end;    ///< rows of the group
  uint32_t cols;
  WeightGeometry geometry;
  uint32_t* words;  ///< the group

  const uint8_t* row(uint32_t r) const { return source + (r - begin) * row_bytes; }
  uint32_t* quad(uint32_t q, uint32_t r) const { return words + 4 * (q * kGroupRows + r); }
  uint32_t* side(uint32_t s, uint32_t r) const {
    return words + geometry.sideWord() + s * kGroupRows + r;
  }
};

/// Distance between consecutive words of a row's quads or side words.
constexpr uint32_t kQuadStep = 4 * kGroupRows;
constexpr uint32_t kSideStep = kGroupRows;

/// Bit `bit` of each of 32 bytes, as a high-bit word.
inline uint32_t highBits(const uint8_t* bytes, uint32_t bit) {
  uint32_t word = 0;
  for (uint32_t f = 0; f < 8; ++f) {
    word |= (readU32(bytes + 4 * f) >> bit & 0x01010101u) << f;
  }
  return word;
}

/// 32 bits of the file, with value i in bit i, as a high-bit word.
inline uint32_t spreadHighBits(uint32_t bits) {
  uint32_t word = 0;
  for (uint32_t f = 0; f < 8; ++f) {
    // Copies 7 bits apart move bit i of the nibble to bit 8i.
    word |= ((bits >> (4 * f) & 0xf) * 0x00204081u & 0x01010101u) << f;
  }
  return word;
}

/// Quads of 64 bytes of 2-bit values. Each 32 bytes hold four units, the first in the lowest bits.
void twoBitQuads(const uint8_t* bytes, uint32_t* quads);

/// Calls pack(block, quads, side) for every block of every row, one block of all rows at a time. This writes the
/// device's memory in order, because jumps may be slow.
template <uint32_t kBlockBytes, uint32_t kQuads, uint32_t kSide, typename Pack>
void packBlocks(const GroupRows& rows, uint32_t blocks, const Pack& pack) {
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      pack(rows.row(r) + static_cast<uint64_t>(b) * kBlockBytes, rows.quad(b * kQuads, r),
           rows.side(b * kSide, r));
    }
  }
}

void packQ2K(const GroupRows& rows);
void packQ3K(const GroupRows& rows);
void packQ4K(const GroupRows& rows);
void packQ5K(const GroupRows& rows);
void packQ6K(const GroupRows& rows);
void packIq4Xs(const GroupRows& rows);
void packIq2Xxs(const GroupRows& rows);
void packIq2Xs(const GroupRows& rows);
void packIq2S(const GroupRows& rows);
void packIq3Xxs(const GroupRows& rows);
void packIq3S(const GroupRows& rows);
void packMxfp4(const GroupRows& rows);
void packTq20(const GroupRows& rows);
void packTq10(const GroupRows& rows);
void packNvfp4(const GroupRows& rows);
void packQ10(const GroupRows& rows);
void packQ20(const GroupRows& rows);

}  // namespace oriel_internal
