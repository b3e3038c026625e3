// Types of blocks: those of low bits, the K types and IQ4_XS. A comment above each gives the file's block in order.
#include "plan/repack.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kUnits = kBlock / kUnit;

uint32_t blocksOf(const GroupRows& rows) { return rows.cols / kBlock; }

// A sign word from four groups of seven signs, from the lowest bits up. The top 4 bits hold other data.
uint32_t evenSigns(uint32_t sevens, uint32_t other) {
  uint32_t bits = 0;
  for (uint32_t l = 0; l < 4; ++l) {
    bits |= (sevens >> (7 * l) & 0x7f) << (8 * l);
  }
  uint32_t word = spreadHighBits(bits);
  for (uint32_t l = 0; l < 4; ++l) {
    word |= (other >> l & 1) << (25 + 2 * l);
  }
  return word;
}

// Copies `count` consecutive words of the file to the side words from `first` on.
void copyWords(const uint8_t* bytes, uint32_t count, uint32_t first, uint32_t* side) {
  for (uint32_t w = 0; w < count; ++w) {
    side[(first + w) * kSideStep] = readU32(bytes + 4 * w);
  }
}

// 32 bytes of signs, one bit per value.
void copySigns(const uint8_t* bytes, uint32_t first, uint32_t* side) {
  for (uint32_t u = 0; u < kUnits; ++u) {
    side[(first + u) * kSideStep] = spreadHighBits(readU32(bytes + 4 * u));
  }
}

}  // namespace

// d, then each unit: four indices as bytes, four times 7 signs and a scale of 4 bits.
void packIq2Xxs(const GroupRows& rows) {
  packBlocks<66, 0, 17>(rows, blocksOf(rows), [](const uint8_t* block, uint32_t*, uint32_t* side) {
    side[0] = readU16(block);
    for (uint32_t u = 0; u < kUnits; ++u) {
      const uint32_t signs = readU32(block + 2 + 8 * u + 4);
      side[(1 + u) * kSideStep] = readU32(block + 2 + 8 * u);
      side[(9 + u) * kSideStep] = evenSigns(signs, signs >> 28);
    }
  });
}

// d, 32 times 9 bits of an index and 7 signs, 4-bit scales (8).
void packIq2Xs(const GroupRows& rows) {
  packBlocks<74, 0, 19>(rows, blocksOf(rows), [](const uint8_t* block, uint32_t*, uint32_t* side) {
    side[0] = readU16(block);
    copyWords(block + 66, 2, 1, side);
    for (uint32_t u = 0; u < kUnits; ++u) {
      uint32_t low = 0, high = 0, signs = 0;
      for (uint32_t l = 0; l < 4; ++l) {
        const uint32_t both = readU16(block + 2 + 8 * u + 2 * l);
        low |= (both & 0xff) << (8 * l);
        high |= (both >> 8 & 1) << l;
        signs |= both >> 9 << (7 * l);
      }
      side[(3 + u) * kSideStep] = low;
      side[(11 + u) * kSideStep] = evenSigns(signs, high);
    }
  });
}

// d, indices (32), signs (32), bits 8 and 9 of the indices (8), 4-bit scales (8).
void packIq2S(const GroupRows& rows) {
  packBlocks<82, 0, 21>(rows, blocksOf(rows), [](const uint8_t* block, uint32_t*, uint32_t* side) {
    side[0] = readU16(block);
    copyWords(block + 74, 2, 1, side);
    copyWords(block + 2, 8, 3, side);
    copyWords(block + 66, 2, 11, side);
    copySigns(block + 34, 13, side);
  });
}

// d, indices (64), each unit's four times 7 signs and scale of 4 bits.
void packIq3Xxs(const GroupRows& rows) {
  packBlocks<98, 0, 25>(rows, blocksOf(rows), [](const uint8_t* block, uint32_t*, uint32_t* side) {
    side[0] = readU16(block);
    copyWords(block + 2, 16, 1, side);
    for (uint32_t u = 0; u < kUnits; ++u) {
      const uint32_t signs = readU32(block + 66 + 4 * u);
      side[(17 + u) * kSideStep] = evenSigns(signs, signs >> 28);
    }
  });
}

// d, indices (64), bit 8 of the indices (8), signs (32), 4-bit scales (4).
void packIq3S(const GroupRows& rows) {
  packBlocks<110, 0, 28>(rows, blocksOf(rows), [](const uint8_t* block, uint32_t*, uint32_t* side) {
    side[0] = readU16(block);
    copyWords(block + 106, 1, 1, side);
    copyWords(block + 2, 16, 2, side);
    copyWords(block + 66, 2, 18, side);
    copySigns(block + 74, 20, side);
  });
}

// e, quants (16).
void packMxfp4(const GroupRows& rows) {
  constexpr uint32_t kBlockBytes = 17;
  const uint32_t blocks = rows.cols / kUnit;
  for (uint32_t b = 0; b < blocks; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* block = rows.row(r) + static_cast<uint64_t>(b) * kBlockBytes;
      std::memcpy(rows.quad(b, r), block + 1, 16);
      uint32_t* side = rows.side(b / 4, r);
      *side = b % 4 == 0 ? block[0] : *side | static_cast<uint32_t>(block[0]) << (8 * (b % 4));
    }
  }
}

// A scale for each 16 values, then their quants (8 bytes each, the first eight values in the low nibbles).
void packNvfp4(const GroupRows& rows) {
  packBlocks<36, 2, 1>(
      rows, rows.cols / 64, [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
        side[0] = readU32(block);
        for (uint32_t i = 0; i < 32; ++i) {  // bytes of both units
          const uint32_t v = i % 16;
          const uint8_t* const first = block + 4 + 16 * (i / 16) + v % 8;
          const uint32_t shift = v / 8 * 4;
          uint8_t* const out = reinterpret_cast<uint8_t*>(quads + i / 16 * kQuadStep);
          out[v] = static_cast<uint8_t>((first[0] >> shift & 15) | (first[8] >> shift & 15) << 4);
        }
      });
}

// d, one bit per value.
void packQ10(const GroupRows& rows) {
  for (uint32_t b = 0; b < rows.cols / 128; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* const block = rows.row(r) + uint64_t{b} * 18;
      uint32_t* const side = rows.side(b / 2 * 9, r);
      *side = b % 2 == 0 ? readU16(block) : *side | readU16(block) << 16;
      for (uint32_t u = 0; u < 4; ++u) {
        side[(1 + b % 2 * 4 + u) * kSideStep] = spreadHighBits(readU32(block + 2 + 4 * u));
      }
    }
  }
}

// d, quants (16), four neighbouring values per byte.
void packQ20(const GroupRows& rows) {
  for (uint32_t b = 0; b < rows.cols / 64; ++b) {
    for (uint32_t r = rows.begin; r < rows.end; ++r) {
      const uint8_t* const block = rows.row(r) + uint64_t{b} * 18;
      uint32_t* const quad = rows.quad(b, r);
      for (uint32_t w = 0; w < 4; ++w) {
        quad[w] = 0;
        for (uint32_t i = 0; i < 16; ++i) {
          const uint32_t q = block[2 + 4 * w + i / 4] >> (2 * (i % 4)) & 3u;
          quad[w] |= q << (8 * (i % 4) + 2 * (i / 4));
        }
      }
      uint32_t* const side = rows.side(b / 2, r);
      *side = b % 2 == 0 ? readU16(block) : *side | readU16(block) << 16;
    }
  }
}

// Quants (64), d.
void packTq20(const GroupRows& rows) {
  packBlocks<66, 4, 2>(rows, blocksOf(rows),
                       [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                         twoBitQuads(block, quads);
                         side[0] = side[kSideStep] = readU16(block + 64) * 0x10001u;
                       });
}

// Bytes of five quants (48), bytes of four quants (4), d. A byte is a fraction of 256, and its base-3 digits are the
// quants. In the first 32 bytes, digit 1 belongs to the first 32 values, digit 2 to the next 32, and so on. Then 16
// bytes and 4 bytes follow the same scheme.
void packTq10(const GroupRows& rows) {
  packBlocks<54, 4, 2>(rows, blocksOf(rows),
                       [](const uint8_t* block, uint32_t* quads, uint32_t* side) {
                         static constexpr uint8_t kPowers[5] = {1, 3, 9, 27, 81};
                         uint8_t two_bits[64] = {};  // in the layout of TQ2_0 files
                         uint32_t value = 0;
                         const auto digits = [&](const uint8_t* bytes, uint32_t count, uint32_t n) {
                           for (uint32_t i = 0; i < n * count; ++i, ++value) {
                             const uint32_t rest = bytes[i % count] * kPowers[i / count] & 0xffu;
                             const uint32_t shift = value % 128 / 32 * 2;
                             two_bits[value / 128 * 32 + value % 32] |=
                                 static_cast<uint8_t>((rest * 3 >> 8) << shift);
                           }
                         };
                         digits(block, 32, 5);
                         digits(block + 32, 16, 5);
                         digits(block + 48, 4, 4);
                         twoBitQuads(two_bits, quads);
                         side[0] = side[kSideStep] = readU16(block + 52) * 0x10001u;
                       });
}

// ---- The K types and IQ4_XS, with byte offsets --------------------------------------------------

namespace {

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
