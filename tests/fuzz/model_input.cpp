#include "fuzz/model_input.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/random_families.h"

namespace oriel_internal::fuzz {

ModelInput::ModelInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  weight_bytes = std::min(input.number(4), kMostWeightBytes);
  choices = static_cast<uint32_t>(input.number(4));
  header.assign(input.rest(), input.rest() + input.left());
}

std::vector<uint8_t> ModelInput::file() const {
  std::vector<uint8_t> bytes(header.size() + static_cast<size_t>(weight_bytes));
  std::copy(header.begin(), header.end(), bytes.begin());
  makeWeights(bytes.data() + header.size(), bytes.size() - header.size());
  return bytes;
}

void makeWeights(uint8_t* bytes, size_t count) {
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    // The sign and the exponent of float16, bfloat16 and float32: about 0.01 to 1.2.
    bytes[i] = static_cast<uint8_t>(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 24 & 0x80));
  }
}

std::string modelInput(uint32_t choices, GgufParts parts) {
  const uint64_t bytes = std::min<uint64_t>(parts.layOut(), UINT32_MAX);
  parts.data.clear();
  test::ByteWriter out;
  out.put(static_cast<uint32_t>(bytes));
  out.put(choices);
  out.append(putTogether(parts));
  return {out.bytes.begin(), out.bytes.end()};
}

std::vector<GgufParts> familyHeaders() {
  constexpr uint32_t kTypes[] = {0, 1, 30, 8, 2,
                                 3, 6, 7,  20};  // row lengths are multiples of their blocks
  std::vector<GgufParts> headers;
  for (const test::RandomFamily& family : test::randomFamilies()) {
    const std::vector<uint8_t> bytes = family.model.bytes();
    GgufParts parts = takeGgufApart(bytes.data(), bytes.size());
    const uint32_t type = kTypes[headers.size() % std::size(kTypes)];
    for (GgufParts::Tensor& tensor : parts.tensors) {
      if (tensor.dims.size() > 1 && tensor.dims[0] % 32 == 0) {
        tensor.type = type;
      }
    }
    parts.data.clear();
    headers.push_back(std::move(parts));
  }
  return headers;
}

size_t mutateModel(uint8_t* data, size_t size, size_t max_size, uint64_t seed, Care care) {
  Chance chance(seed);
  if (size < kModelHead + 24 || chance.once(12)) {
    return mutateBytes(data, size, max_size, chance());
  }
  if (chance.once(16)) {
    data[4 + chance.below(4)] = static_cast<uint8_t>(chance());
    return size;
  }
  GgufParts parts = takeGgufApart(data + kModelHead, size - kModelHead);
  for (uint64_t n = 1 + chance.below(3) * chance.below(2); n != 0; --n) {
    mutateGguf(&parts, care, &chance);
  }
  uint64_t end = 0;
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    const uint64_t bytes = tensorBytes(tensor);
    end = std::max(end, bytes > UINT64_MAX - tensor.offset ? UINT64_MAX : tensor.offset + bytes);
  }
  const uint32_t weights = static_cast<uint32_t>(std::min<uint64_t>(end, UINT32_MAX));
  if (!chance.once(16)) {
    std::memcpy(data, &weights, sizeof(weights));
  }
  const std::vector<uint8_t> made = putTogether(parts);
  return kModelHead + put(made, data + kModelHead, max_size - kModelHead);
}

InputPath::InputPath(const char* kind)
    : path_(testing::TempDir() + "/oriel-fuzz-" + std::to_string(getpid()) + "." + kind) {}

InputPath::~InputPath() { std::remove(path_.c_str()); }

void InputPath::write(const std::vector<uint8_t>& bytes, uint64_t file_bytes) const {
  {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  if (file_bytes != bytes.size()) {
    std::error_code failed;
    std::filesystem::resize_file(path_, file_bytes, failed);
    EXPECT_FALSE(failed) << failed.message();
  }
}

}  // namespace oriel_internal::fuzz
