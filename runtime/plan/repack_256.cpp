// Types whose blocks are 256 values: the K types and IQ4_XS. The comment above each gives the
// file's block in order, with byte offsets.
#include "plan/repack.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kUnits = kBlock / kUnit;

uint32_t blocksOf(const GroupRows& rows) { return rows.cols / kBlock; }

// Bits 2n and 2n + 1 of 16 bytes, as a word of 2-bit values.
uint32_t twoBits(const uint8_t* bytes, uint32_t n) {
  uint32_t word = 0;
  for (uint32_t f = 0; f < 4; ++f) {
    word |= (readU32(bytes + 4 * f) >> (2 * n) & 0x03030303u) << (2 * f);
  }
  return word;
}

// The low (`half` 0) or high nibbles of 32 bytes, one unit, as a quad.
void nibbleQuad(const uint8_t* bytes, uint32_t half, uint32_t* quad) {
  for (uint32_t j = 0; j < 4; ++j) {
    const uint32_t low = readU32(bytes + 4 * j) >> (4 * half) & 0x0f0f0f0fu;
    const uint32_t high = readU32(bytes + 16 + 4 * j) >> (4 * half) & 0x0f0f0f0fu;
    quad[j] = low | high << 4;
  }
}

// Quads of 128 bytes of nibbles. Each 32 bytes hold one unit in their low and the next in their high nibbles.
void nibbleQuads(const uint8_t* bytes, uint32_t* quads) {
  for (uint32_t u = 0; u < kUnits; ++u) {
    nibbleQuad(bytes + u / 2 * 32, u % 2, quads + u * kQuadStep);
  }
}

// 12 bytes of eight 6-bit scales and eight 6-bit mins: the first four of each in the low 6 bits of
// bytes 0-3 and 4-7, the others' low nibbles in bytes 8-11 and their high two bits on top of the
// first.
void scalesAndMins(const uint8_t* bytes, uint32_t* side) {
  const uint32_t a = readU32(bytes);
  const uint32_t b = readU32(bytes + 4);
  const uint32_t c = readU32(bytes + 8);
  side[0] = a & 0x3f3f3f3fu;
  side[kSideStep] = (c & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u);
  side[2 * kSideStep] = b & 0x3f3f3f3fu;
  side[3 * kSideStep] = (c >> 4 & 0x0f0f0f0fu) | (b >> 2 & 0x30303030u);
}

// Subtracts 32 from four bytes of 0..63; the results are int8 and stay within their bytes.
uint32_t minus32(uint32_t bytes) {
  // 0..63 minus 32 flips bit 5 and copies its inverse into bits 6 and 7.
  const uint32_t negative = ~bytes & 0x20202020u;
  return (bytes & 0x1f1f1f1fu) | negative | negative << 1 | negative << 2;
}

}  // namespace

void twoBitQuads(const uint8_t* bytes, uint32_t* quads) {
  for (uint32_t w = 0; w < 16; ++w) {  // each word has 16 values
    quads[w / 4 * kQuadStep + w % 4] = twoBits(bytes + w / 8 * 32 + w % 2 * 16, w % 8 / 2);
  }
}

// scale | min << 4 as bytes (16), quants (64), d, dmin.
void packQ2K(const GroupRows& rows) {
  packBlocks<84, 4, 5>(rows, blocksOf(rows),
                       [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                         twoBitQuads(block + 16, quads);
                         side[0] = readU32(block + 80);
                         for (uint32_t w = 0; w < 4; ++w) {
                           side[(1 + w) * kSideStep] = readU32(block + 4 * w);
                         }
                       });
}

// High bits (32), quants (64), scales (12), d. Scales: low nibbles of 0-7 in the low, of 8-15 in
// the high nibbles of bytes 0-7; the high two bits of scale i in byte 8 + i % 4, at bits 2 (i / 4).
void packQ3K(const GroupRows& rows) {
  packBlocks<110, 4, 13>(
      rows, blocksOf(rows), [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
        twoBitQuads(block + 32, quads);
        side[0] = readU16(block + 108);
        const uint32_t high = readU32(block + 104);
        for (uint32_t w = 0; w < 4; ++w) {
          const uint32_t low = readU32(block + 96 + w % 2 * 4) >> (w / 2 * 4);
          side[(1 + w) * kSideStep] =
              minus32((low & 0x0f0f0f0fu) | (high >> (2 * w) & 0x03030303u) << 4);
        }
        for (uint32_t u = 0; u < kUnits; ++u) {
          side[(5 + u) * kSideStep] = highBits(block, u);
        }
      });
}

// d, dmin, scales and mins (12), quants (128).
void packQ4K(const GroupRows& rows) {
  packBlocks<144, 8, 5>(rows, blocksOf(rows),
                        [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                          nibbleQuads(block + 16, quads);
                          side[0] = readU32(block);
                          scalesAndMins(block + 4, side + kSideStep);
                        });
}

// d, dmin, scales and mins (12), high bits (32), quants (128).
void packQ5K(const GroupRows& rows) {
  packBlocks<176, 8, 13>(rows, blocksOf(rows),
                         [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                           nibbleQuads(block + 48, quads);
                           side[0] = readU32(block);
                           scalesAndMins(block + 4, side + kSideStep);
                           for (uint32_t u = 0; u < kUnits; ++u) {
                             side[(5 + u) * kSideStep] = highBits(block + 16, u);
                           }
                         });
}

// Low nibbles (128), high two bits (64), int8 scales (16), d. Each half of the block has 64 bytes
// of nibbles: units 0 and 1 low, 2 and 3 high; and 32 bytes with the high bits of its four units.
void packQ6K(const GroupRows& rows) {
  packBlocks<210, 8, 21>(
      rows, blocksOf(rows), [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
        side[0] = readU16(block + 208);
        for (uint32_t w = 0; w < 4; ++w) {
          side[(1 + w) * kSideStep] = readU32(block + 192 + 4 * w);
        }
        for (uint32_t u = 0; u < kUnits; ++u) {
          const uint32_t half = u / 4;
          nibbleQuad(block + half * 64 + u % 2 * 32, u % 4 / 2, quads + u * kQuadStep);
          for (uint32_t w = 0; w < 2; ++w) {
            side[(5 + 2 * u + w) * kSideStep] = twoBits(block + 128 + half * 32 + 16 * w, u % 4);
          }
        }
      });
}

// d, high two bits of the scales (2), their low nibbles (4), quants (128): a unit per 16 bytes.
void packIq4Xs(const GroupRows& rows) {
  packBlocks<136, 8, 3>(rows, blocksOf(rows),
                        [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                          side[0] = readU16(block);
                          const uint32_t high = readU16(block + 2);
                          for (uint32_t w = 0; w < 2; ++w) {
                            uint32_t scales = 0;
                            for (uint32_t i = 0; i < 4; ++i) {
                              const uint32_t u = 4 * w + i;
                              const uint32_t low = block[4 + u / 2] >> (4 * (u % 2)) & 0xf;
                              scales |= (low | (high >> (2 * u) & 3) << 4) << (8 * i);
                            }
                            side[(1 + w) * kSideStep] = minus32(scales);
                          }
                          for (uint32_t u = 0; u < kUnits; ++u) {
                            std::memcpy(quads + u * kQuadStep, block + 8 + 16 * u, 16);
                          }
                        });
}

}  // namespace oriel_internal
