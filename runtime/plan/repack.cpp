#include "plan/repack.h"

#include <algorithm>

#include "base/half.h"

namespace oriel_internal {
namespace {

// Copies values and fills the last unit with zeros.
template <uint32_t kBytes>
void packPlain(const GroupRows& rows) {
  const uint64_t used = static_cast<uint64_t>(rows.cols) * kBytes;
  for (uint32_t q = 0; q < rows.geometry.quads; ++q) {
    const uint64_t at = 16ull * q;
    const size_t bytes = static_cast<size_t>(at < used ? std::min<uint64_t>(16, used - at) : 0);
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      if (bytes == 16) {
        std::memcpy(rows.quad(q, r), rows.row(r) + at, 16);
        continue;
      }
      std::memset(rows.quad(q, r), 0, 16);
      std::memcpy(rows.quad(q, r), rows.row(r) + at, bytes);
    }
  }
}

// Blocks of an f16 scale and 16 * kQuads bytes of quants, which are copied. A word holds two scales.
template <uint32_t kQuads>
void packScaled(const GroupRows& rows) {
  constexpr uint32_t kBlockBytes = 2 + 16 * kQuads;
  const uint32_t blocks = rows.cols / kUnit;
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* block = rows.row(r) + static_cast<uint64_t>(b) * kBlockBytes;
      for (uint32_t q = 0; q < kQuads; ++q) {
        std::memcpy(rows.quad(b * kQuads + q, r), block + 2 + 16 * q, 16);
      }
      uint32_t* side = rows.side(b / 2, r);
      *side = b % 2 == 0 ? readU16(block) : *side | readU16(block) << 16;
    }
  }
}

// d, m, quants.
void packQ41(const GroupRows& rows) {
  packBlocks<20, 1, 1>(rows, rows.cols / kUnit,
                       [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                         std::memcpy(quads, block + 4, 16);
                         side[0] = readU32(block);
                       });
}

// d, m, high bits, quants.
void packQ51(const GroupRows& rows) {
  packBlocks<24, 1, 2>(rows, rows.cols / kUnit,
                       [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                         std::memcpy(quads, block + 8, 16);
                         side[0] = spreadHighBits(readU32(block + 4));
                         side[kSideStep] = readU32(block);
                       });
}

// d, high bits, quants.
void packQ50(const GroupRows& rows) {
  constexpr uint32_t kBlockBytes = 22;
  const uint32_t blocks = rows.cols / kUnit;
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* block = rows.row(r) + static_cast<uint64_t>(b) * kBlockBytes;
      std::memcpy(rows.quad(b, r), block + 6, 16);
      uint32_t* side = rows.side(b / 2 * 3, r);
      const uint32_t high = spreadHighBits(readU32(block + 2));
      if (b % 2 == 0) {
        side[0] = high;
        side[kSideStep] = 0;
        side[2 * kSideStep] = readU16(block);
      } else {
        side[kSideStep] = high;
        side[2 * kSideStep] |= readU16(block) << 16;
      }
    }
  }
}

void packGroup(WeightType type, const GroupRows& rows) {
  switch (type) {
    case WeightType::kF32:
      return packPlain<4>(rows);
    case WeightType::kF16:
    case WeightType::kBf16:
      return packPlain<2>(rows);
    case WeightType::kQ8_0:
      return packScaled<2>(rows);
    case WeightType::kQ4_0:
    case WeightType::kIq4Nl:
      return packScaled<1>(rows);
    case WeightType::kQ4_1:
      return packQ41(rows);
    case WeightType::kQ5_0:
      return packQ50(rows);
    case WeightType::kQ5_1:
      return packQ51(rows);
    case WeightType::kQ2_K:
      return packQ2K(rows);
    case WeightType::kQ3_K:
      return packQ3K(rows);
    case WeightType::kQ4_K:
      return packQ4K(rows);
    case WeightType::kQ5_K:
      return packQ5K(rows);
    case WeightType::kQ6_K:
      return packQ6K(rows);
    case WeightType::kIq4Xs:
      return packIq4Xs(rows);
    case WeightType::kIq2Xxs:
      return packIq2Xxs(rows);
    case WeightType::kIq2Xs:
      return packIq2Xs(rows);
    case WeightType::kIq2S:
      return packIq2S(rows);
    case WeightType::kIq3Xxs:
      return packIq3Xxs(rows);
    case WeightType::kIq3S:
      return packIq3S(rows);
    case WeightType::kMxfp4:
      return packMxfp4(rows);
    case WeightType::kTq2_0:
      return packTq20(rows);
    case WeightType::kTq1_0:
      return packTq10(rows);
    case WeightType::kNvfp4:
      return packNvfp4(rows);
    case WeightType::kQ1_0:
      return packQ10(rows);
    case WeightType::kQ2_0:
      return packQ20(rows);
  }
}

// Calls each(begin, end, group) for the rows of every group in first_row .. first_row + rows - 1.
template <typename Each>
void forGroups(uint32_t first_row, uint32_t rows, const Each& each) {
  const uint32_t end = first_row + rows;
  for (uint32_t row = first_row; row < end;) {
    const uint32_t group = row / kGroupRows;
    const uint32_t next = std::min(end, (group + 1) * kGroupRows);
    each(row - group * kGroupRows, next - group * kGroupRows, group);
    row = next;
  }
}

}  // namespace

void repackRows(WeightType type, const uint8_t* source, uint32_t rows, uint32_t cols,
                uint32_t first_row, uint32_t* groups) {
  GroupRows part;
  part.source = source;
  part.row_bytes = fileRowBytes(fileTypeOf(type), cols);
  part.cols = cols;
  part.geometry = weightGeometry(type, cols);
  forGroups(first_row, rows, [&](uint32_t begin, uint32_t end, uint32_t group) {
    part.begin = begin;
    part.end = end;
    part.words = groups + static_cast<uint64_t>(group) * part.geometry.groupWords();
    packGroup(type, part);
    part.source += (end - begin) * part.row_bytes;
  });
}

void clearRows(WeightType type, uint32_t rows, uint32_t cols, uint32_t first_row,
               uint32_t* groups) {
  const WeightGeometry geometry = weightGeometry(type, cols);
  forGroups(first_row, rows, [&](uint32_t begin, uint32_t end, uint32_t group) {
    uint32_t* words = groups + static_cast<uint64_t>(group) * geometry.groupWords();
    for (uint32_t q = 0; q < geometry.quads; ++q) {
      std::memset(words + 4 * (q * kGroupRows + begin), 0, 16ull * (end - begin));
    }
    for (uint32_t s = 0; s < geometry.side; ++s) {
      std::memset(words + geometry.sideWord() + s * kGroupRows + begin, 0, 4ull * (end - begin));
    }
  });
}

void repackVector(uint32_t file_type, const uint8_t* source, uint32_t cols, float* values) {
  for (uint32_t c = 0; c < cols; ++c) {
    switch (static_cast<TensorType>(file_type)) {
      case TensorType::kF16:
        values[c] = halfToFloat(static_cast<uint16_t>(readU16(source + 2ull * c)));
        break;
      case TensorType::kBf16:
        values[c] = bfloat16ToFloat(static_cast<uint16_t>(readU16(source + 2ull * c)));
        break;
      default:
        values[c] = bitsToFloat(readU32(source + 4ull * c));
        break;
    }
  }
  std::fill(values + cols, values + paddedCols(cols), 0.0f);
}

}  // namespace oriel_internal
