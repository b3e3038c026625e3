// The decoder of packed kernels (base/xz.h): its input comes with the program, but is not trusted. Three bytes give the
// unpacked size, the file follows.
#include <algorithm>
#include <memory>

#include "base/xz.h"
#include "fuzz/fuzz.h"

namespace oriel_internal::fuzz::fuzz_xz {
namespace {

constexpr size_t kHead = 3;
constexpr size_t kBlockHeader = 12;  // where the first block's header begins in the file

uint32_t crc32Of(const uint8_t* data, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0);
    }
  }
  return ~crc;
}

void putLittle(uint8_t* at, uint32_t value) {
  for (int i = 0; i < 4; ++i) {
    at[i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

}  // namespace

ORIEL_FUZZ(xz) {
  Input input(data, size);
  const size_t out_bytes = input.number(kHead) % (1 << 20);
  const auto work = std::make_unique<XzWork>();
  std::vector<uint8_t> once(out_bytes, 0xAA);
  std::vector<uint8_t> again(out_bytes, 0x55);
  const bool unpacked = unpackXz(input.rest(), input.left(), once.data(), once.size(), work.get());
  ASSERT_EQ(unpacked, unpackXz(input.rest(), input.left(), again.data(), again.size(), work.get()));
  if (unpacked) {
    pastFirstCheck();
  }
  EXPECT_TRUE(!unpacked || once == again) << "not every byte was written";
  if (unpacked && out_bytes != 0) {
    EXPECT_FALSE(unpackXz(input.rest(), input.left(), once.data(), once.size() - 1, work.get()));
  }
}

// Checksums of the two headers are made right again, most of the time.
ORIEL_FUZZ_MUTATE(xz) {
  Chance chance(seed);
  size = mutateBytes(data, size, max_size, seed);
  if (size > kHead + kBlockHeader + 1 && !chance.once(8)) {
    uint8_t* const file = data + kHead;
    const size_t bytes = size - kHead;
    putLittle(file + 8, crc32Of(file + 6, 2));
    const size_t header = (size_t{file[kBlockHeader]} + 1) * 4;
    if (header >= 8 && kBlockHeader + header <= bytes) {
      putLittle(file + kBlockHeader + header - 4, crc32Of(file + kBlockHeader, header - 4));
    }
  }
  return size;
}

}  // namespace oriel_internal::fuzz::fuzz_xz
