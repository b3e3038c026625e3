#include "plan/weight_layout.h"

#include <cstring>

#include "base/half.h"

namespace oriel {
namespace {

constexpr uint32_t kQ8Bytes = 34;  // f16 scale, 32 int8
constexpr uint32_t kQ4Bytes = 18;  // f16 scale, 16 bytes: value i in the low, i + 16 in the high nibble

uint16_t readU16(const uint8_t* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void repackQ8(const uint8_t* source, uint64_t blocks, uint32_t* words) {
  for (uint64_t b = 0; b < blocks; ++b) {
    std::memcpy(words + b * (kQuantBlock / 4), source + b * kQ8Bytes + 2, kQuantBlock);
  }
}

void repackQ4(const uint8_t* source, uint64_t blocks, uint32_t* words) {
  for (uint64_t b = 0; b < blocks; ++b) {
    const uint8_t* bytes = source + b * kQ4Bytes + 2;
    for (uint32_t w = 0; w < kQuantBlock / 8; ++w) {
      const uint8_t* eight = bytes + (w % 2) * 8;
      const uint32_t shift = w < 2 ? 0 : 4;
      uint32_t word = 0;
      for (uint32_t i = 0; i < 8; ++i) {
        word |= static_cast<uint32_t>((eight[i] >> shift) & 0xf) << (4 * i);
      }
      words[b * (kQuantBlock / 8) + w] = word;
    }
  }
}

float readFloat(uint32_t file_type, const uint8_t* row, uint32_t col) {
  switch (static_cast<TensorType>(file_type)) {
    case TensorType::kF16:
      return halfToFloat(readU16(row + 2ull * col));
    case TensorType::kBf16:
      return bfloat16ToFloat(readU16(row + 2ull * col));
    default: {
      float value;
      std::memcpy(&value, row + 4ull * col, sizeof(value));
      return value;
    }
  }
}

}  // namespace

const char* weightTypeName(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return "f32";
    case WeightType::kF16:
      return "f16";
    case WeightType::kBf16:
      return "bf16";
    case WeightType::kQ8_0:
      return "q8_0";
    case WeightType::kQ4_0:
      return "q4_0";
  }
  return "?";
}

bool weightTypeOf(uint32_t file_type, WeightType* type) {
  switch (static_cast<TensorType>(file_type)) {
    case TensorType::kF32:
      *type = WeightType::kF32;
      return true;
    case TensorType::kF16:
      *type = WeightType::kF16;
      return true;
    case TensorType::kBf16:
      *type = WeightType::kBf16;
      return true;
    case TensorType::kQ8_0:
      *type = WeightType::kQ8_0;
      return true;
    case TensorType::kQ4_0:
      *type = WeightType::kQ4_0;
      return true;
  }
  return false;
}

WeightGeometry weightGeometry(WeightType type, uint32_t cols) {
  const uint32_t padded = paddedCols(cols);
  switch (type) {
    case WeightType::kF32:
      return {padded, 0};
    case WeightType::kF16:
    case WeightType::kBf16:
      return {padded / 2, 0};
    case WeightType::kQ8_0:
      return {padded / 4, padded / kQuantBlock};
    case WeightType::kQ4_0:
      return {padded / 8, padded / kQuantBlock};
  }
  return {};
}

uint32_t maxSliceRows(const WeightGeometry& geometry) {
  const uint64_t bytes_per_16 = geometry.sliceBytes(16);
  return static_cast<uint32_t>(kMaxBindingBytes / bytes_per_16 * 16);
}

uint64_t fileRowBytes(uint32_t file_type, uint32_t cols) {
  uint32_t block_values = 1;
  uint32_t block_bytes = 0;
  if (!tensorTypeSize(file_type, &block_values, &block_bytes)) {
    return 0;
  }
  return static_cast<uint64_t>(cols) / block_values * block_bytes;
}

void repackQuants(uint32_t file_type, WeightType type, const uint8_t* source, uint32_t rows,
                  uint32_t cols, uint32_t* words) {
  const uint64_t row_bytes = fileRowBytes(file_type, cols);
  const WeightGeometry geometry = weightGeometry(type, cols);
  switch (type) {
    case WeightType::kQ8_0:
      repackQ8(source, static_cast<uint64_t>(rows) * geometry.blocks_per_row, words);
      return;
    case WeightType::kQ4_0:
      repackQ4(source, static_cast<uint64_t>(rows) * geometry.blocks_per_row, words);
      return;
    case WeightType::kF16:
    case WeightType::kBf16:
      for (uint32_t r = 0; r < rows; ++r) {
        uint32_t* row = words + static_cast<uint64_t>(r) * geometry.words_per_row;
        std::memset(row, 0, geometry.words_per_row * 4ull);
        std::memcpy(row, source + r * row_bytes, row_bytes);
      }
      return;
    case WeightType::kF32:
      for (uint32_t r = 0; r < rows; ++r) {
        uint32_t* row = words + static_cast<uint64_t>(r) * geometry.words_per_row;
        for (uint32_t c = 0; c < geometry.words_per_row; ++c) {
          row[c] = c < cols ? floatToBits(readFloat(file_type, source + r * row_bytes, c)) : 0;
        }
      }
      return;
  }
}

void repackScales(uint32_t file_type, const uint8_t* source, uint32_t rows, uint32_t cols,
                  uint16_t* scales) {
  const bool q8 = static_cast<TensorType>(file_type) == TensorType::kQ8_0;
  const uint64_t block_bytes = q8 ? kQ8Bytes : kQ4Bytes;
  const uint64_t blocks = static_cast<uint64_t>(rows) * (cols / kQuantBlock);
  for (uint64_t b = 0; b < blocks; ++b) {
    scales[b] = readU16(source + b * block_bytes);
  }
}

}  // namespace oriel
