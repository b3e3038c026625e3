// Rows in file format and their values: one value at a time, from the formats' definitions. Shares only half.h and the
// published codebooks with the library; all entries of these are in tests/data/dequant.json. Tests only.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "gguf/gguf.h"
#include "plan/codebooks.h"

namespace oriel_internal::test {

inline uint32_t blockValues(TensorType type) {
  uint32_t values = 0, bytes = 0;
  return tensorTypeSize(static_cast<uint32_t>(type), &values, &bytes) ? values : 0;
}
inline uint32_t blockBytes(TensorType type) {
  uint32_t values = 0, bytes = 0;
  return tensorTypeSize(static_cast<uint32_t>(type), &values, &bytes) ? bytes : 0;
}

/// Offsets of a block's f16 numbers.
inline std::vector<uint32_t> scaleOffsets(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    case TensorType::kQ2_K:
      return {80, 82};
    case TensorType::kQ3_K:
      return {108};
    case TensorType::kQ6_K:
      return {208};
    case TensorType::kTq1_0:
      return {52};
    case TensorType::kTq2_0:
      return {64};
    default:
      return {0};
  }
}

inline float halfIn(const uint8_t* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, 2);
  return halfToFloat(half);
}

/// Code i, of 2 or 3 bits, of an entry of a codebook.
inline int codeIn(const uint32_t* book, uint32_t entry, uint32_t bits, uint32_t i) {
  return static_cast<int>(book[entry / 2] >> (16 * (entry % 2) + bits * i) & ((1u << bits) - 1));
}

/// Sign i of eight: seven are given, and the number of minus signs is even.
inline float evenSign(uint32_t seven, uint32_t i) {
  uint32_t odd = 0;
  for (uint32_t k = 0; k < 7; ++k) {
    odd ^= seven >> k & 1;
  }
  return ((i < 7 ? seven >> i & 1 : odd) != 0) ? -1.0f : 1.0f;
}

/// Value i of a block of an IQ2 or IQ3 type.
inline float codebookValue(TensorType type, const uint8_t* b, uint32_t i) {
  static const float kIq2[4] = {8, 25, 43, 0};
  static const float kIq3Xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  const uint32_t unit = i / 32, eight = i / 8, four = i / 4;
  const uint8_t* const s = b + (type == TensorType::kIq2S ? 34 : 74);
  const float sign = (s[eight] >> (i % 8) & 1) != 0 ? -1.0f : 1.0f;  // of IQ2_S and IQ3_S
  const uint32_t seven_at = 7 * (eight % 4);
  const auto nibble = [&](const uint8_t* scales, uint32_t n) {
    return static_cast<float>(scales[n / 2] >> (4 * (n % 2)) & 15);
  };
  const float d = halfIn(b);
  uint32_t word = 0;
  switch (type) {
    case TensorType::kIq2Xxs:
      std::memcpy(&word, b + 2 + 8 * unit + 4, 4);
      return d * (0.5f + static_cast<float>(word >> 28)) * 0.25f *
             kIq2[codeIn(kIq2XxsGrid, b[2 + 8 * unit + eight % 4], 2, i % 8)] *
             evenSign(word >> seven_at & 127, i % 8);
    case TensorType::kIq2Xs:
      word = b[2 + 2 * eight] | b[3 + 2 * eight] << 8;
      return d * (0.5f + nibble(b + 66, i / 16)) * 0.25f *
             kIq2[codeIn(kIq2XsGrid, word & 511, 2, i % 8)] * evenSign(word >> 9, i % 8);
    case TensorType::kIq2S:
      word = b[2 + eight] | (b[66 + unit] >> (2 * (eight % 4)) & 3) << 8;
      return d * (0.5f + nibble(b + 74, i / 16)) * 0.25f * kIq2[codeIn(kIq2SGrid, word, 2, i % 8)] *
             sign;
    case TensorType::kIq3Xxs:
      std::memcpy(&word, b + 66 + 4 * unit, 4);
      return d * (0.5f + static_cast<float>(word >> 28)) * 0.5f *
             kIq3Xxs[codeIn(kIq3XxsGrid, b[2 + four], 3, i % 4)] *
             evenSign(word >> seven_at & 127, i % 8);
    default:
      word = b[2 + four] | (b[66 + unit] >> (four % 8) & 1) << 8;
      return d * (1 + 2 * nibble(b + 106, unit)) *
             static_cast<float>(2 * codeIn(kIq3SGrid, word, 3, i % 4) + 1) * sign;
  }
}

/// Value i of a block.
inline float blockValue(TensorType type, const uint8_t* b, uint32_t i) {
  static const int kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
  const auto f = [](int value) { return static_cast<float>(value); };
  const auto bit = [](const uint8_t* bytes, uint32_t n) { return bytes[n / 8] >> (n % 8) & 1; };
  const auto nibble32 = [&](const uint8_t* qs) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; };
  // 256 values: two halves of four runs of 32.
  const uint32_t half = i / 128, run = i % 128 / 32, l = i % 32, sub = i / 32;
  const auto nibble256 = [&](const uint8_t* qs) {
    return sub % 2 == 0 ? qs[sub / 2 * 32 + l] & 15 : qs[sub / 2 * 32 + l] >> 4;
  };
  const auto scaleMin = [&](const uint8_t* s, int* scale, int* min) {
    *scale = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
    *min = sub < 4 ? s[sub + 4] & 63 : (s[sub + 4] >> 4) | (s[sub] >> 6) << 4;
  };
  int scale = 0, min = 0;
  switch (type) {
    case TensorType::kF32: {
      float value;
      std::memcpy(&value, b, 4);
      return value;
    }
    case TensorType::kF16:
      return halfIn(b);
    case TensorType::kBf16:
      return bitsToFloat(static_cast<uint32_t>(b[0]) << 16 | static_cast<uint32_t>(b[1]) << 24);
    case TensorType::kQ8_0:
      return halfIn(b) * f(static_cast<int8_t>(b[2 + i]));
    case TensorType::kQ4_0:
      return halfIn(b) * f(nibble32(b + 2) - 8);
    case TensorType::kIq4Nl:
      return halfIn(b) * f(kTable[nibble32(b + 2)]);
    case TensorType::kQ4_1:
      return halfIn(b) * f(nibble32(b + 4)) + halfIn(b + 2);
    case TensorType::kQ5_0:
      return halfIn(b) * f((nibble32(b + 6) | bit(b + 2, i) << 4) - 16);
    case TensorType::kQ5_1:
      return halfIn(b) * f(nibble32(b + 8) | bit(b + 4, i) << 4) + halfIn(b + 2);
    case TensorType::kQ2_K: {
      const int both = b[i / 16];
      const int q = b[16 + half * 32 + l] >> (2 * run) & 3;
      return halfIn(b + 80) * f(both & 15) * f(q) - halfIn(b + 82) * f(both >> 4);
    }
    case TensorType::kQ3_K: {
      const uint32_t s = i / 16;
      const uint8_t* scales = b + 96;
      const int low = s < 8 ? scales[s] & 15 : scales[s - 8] >> 4;
      scale = (low | (scales[8 + s % 4] >> (2 * (s / 4)) & 3) << 4) - 32;
      const int q = (b[32 + half * 32 + l] >> (2 * run) & 3) - ((b[l] >> sub & 1) != 0 ? 0 : 4);
      return halfIn(b + 108) * f(scale) * f(q);
    }
    case TensorType::kQ4_K:
      scaleMin(b + 4, &scale, &min);
      return halfIn(b) * f(scale) * f(nibble256(b + 16)) - halfIn(b + 2) * f(min);
    case TensorType::kQ5_K:
      scaleMin(b + 4, &scale, &min);
      return halfIn(b) * f(scale) * f(nibble256(b + 48) | (b[16 + l] >> sub & 1) << 4) -
             halfIn(b + 2) * f(min);
    case TensorType::kQ6_K: {
      const int pair = b[half * 64 + run % 2 * 32 + l];
      const int q = (run < 2 ? pair & 15 : pair >> 4) | (b[128 + half * 32 + l] >> (2 * run) & 3)
                                                            << 4;
      return halfIn(b + 208) * f(static_cast<int8_t>(b[192 + i / 16])) * f(q - 32);
    }
    case TensorType::kIq4Xs: {
      const int high = b[2] | b[3] << 8;
      scale = (b[4 + sub / 2] >> (4 * (sub % 2)) & 15) | (high >> (2 * sub) & 3) << 4;
      const int pair = b[8 + sub * 16 + i % 16];
      return halfIn(b) * f(scale - 32) * f(kTable[l < 16 ? pair & 15 : pair >> 4]);
    }
    case TensorType::kMxfp4: {
      static const float kE2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
      const int q = nibble32(b + 1);
      const float size = std::ldexp(kE2m1[q & 7], b[0] - 127);
      return q > 8 ? -size : size;  // 8 would be minus zero, which is read as zero
    }
    case TensorType::kNvfp4: {
      static const float kE2m1[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
      const int byte = b[i / 16] & 127;
      const float of_run = byte == 127 ? 0
                           : byte < 8  ? std::ldexp(f(byte), -9)
                                       : std::ldexp(f(8 + byte % 8), byte / 8 - 10);
      const int q = b[4 + i / 16 * 8 + i % 8] >> (i % 16 / 8 * 4) & 15;
      const float size = kE2m1[q & 7] * of_run;
      return q > 8 ? -size : size;
    }
    case TensorType::kQ1_0:
      return halfIn(b) * f(2 * (b[2 + i / 8] >> (i % 8) & 1) - 1);
    case TensorType::kQ2_0:
      return halfIn(b) * f((b[2 + i / 4] >> (2 * (i % 4)) & 3) - 1);
    case TensorType::kTq2_0:
      return halfIn(b + 64) * f((b[half * 32 + l] >> (2 * run) & 3) - 1);
    case TensorType::kTq1_0: {
      // Base-3 digits of a fraction of 256.
      const uint32_t first = i < 160 ? 0 : i < 240 ? 160 : 240;
      const uint32_t count = i < 160 ? 32 : i < 240 ? 16 : 4;
      const uint32_t at = (i < 160 ? 0 : i < 240 ? 32 : 48) + (i - first) % count;
      uint32_t rest = b[at];
      for (uint32_t digit = (i - first) / count; digit > 0; --digit) {
        rest = rest * 3 % 256;
      }
      return halfIn(b + 52) * f(static_cast<int>(rest * 3 / 256) - 1);
    }
    case TensorType::kIq2Xxs:
    case TensorType::kIq2Xs:
    case TensorType::kIq2S:
    case TensorType::kIq3Xxs:
    case TensorType::kIq3S:
      return codebookValue(type, b, i);
  }
  return 0;
}

inline float rowValue(TensorType type, const uint8_t* row, uint32_t col) {
  const uint32_t values = blockValues(type);
  return blockValue(type, row + static_cast<size_t>(col / values) * blockBytes(type), col % values);
}

/// A half that is finite.
template <typename Engine>
uint16_t randomHalf(Engine* engine) {
  uint16_t half = 0;
  do {
    half = static_cast<uint16_t>((*engine)());
  } while ((half & 0x7c00) == 0x7c00);
  return half;
}

/// `count` blocks of random bits whose scales are halfOf().
template <typename Engine, typename HalfOf>
std::vector<uint8_t> randomBlocks(TensorType type, size_t count, Engine* engine,
                                  const HalfOf& halfOf) {
  std::vector<uint8_t> bytes(count * blockBytes(type));
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>((*engine)());
  }
  for (size_t i = 0; i < count; ++i) {
    uint8_t* block = bytes.data() + i * blockBytes(type);
    if (type == TensorType::kF32) {
      const float value = halfToFloat(halfOf());
      std::memcpy(block, &value, 4);
      continue;
    }
    if (type == TensorType::kMxfp4) {
      const float size = std::fabs(halfToFloat(halfOf()));
      block[0] = static_cast<uint8_t>(size > 0 ? std::ilogb(size) + 127 : 0);
      continue;
    }
    if (type == TensorType::kNvfp4) {
      for (uint32_t s = 0; s < 4; ++s) {
        const float size = std::fabs(halfToFloat(halfOf()));
        const int e = size > 0 ? std::ilogb(size) + 7 : 0;
        block[s] = static_cast<uint8_t>(std::min(std::max(e, 0), 14) * 8 + block[s] % 8);
      }
      continue;
    }
    for (const uint32_t offset : scaleOffsets(type)) {
      const uint16_t half = halfOf();
      std::memcpy(block + offset, &half, 2);
    }
  }
  return bytes;
}

}  // namespace oriel_internal::test
