// Replacements of compiler builtins, for Microsoft's compiler, give equal results.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checked.h"
#include "base/xz.h"
#include "cpu/simd.h"

namespace oriel_internal::test::test_portable {
namespace {

TEST(Portable, signed_arithmetic_overflows_where_the_compilers_does) {
  std::vector<int64_t> numbers = {INT64_MIN,           INT64_MIN + 1,       INT64_MAX,
                                  INT64_MAX - 1,       INT64_C(3037000499), INT64_C(3037000500),
                                  -INT64_C(3037000500)};
  for (int64_t near = -3; near <= 3; ++near) {
    for (const int64_t far :
         {INT64_C(0), INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 62, -(INT64_C(1) << 62)}) {
      numbers.push_back(near + far);
    }
  }
  for (const int64_t a : numbers) {
    for (const int64_t b : numbers) {
      int64_t wanted = 0;
      int64_t got = 0;
      EXPECT_EQ(!__builtin_add_overflow(a, b, &wanted), checkedSignedAdd(a, b, &got))
          << a << " + " << b;
      EXPECT_EQ(wanted, got);
      EXPECT_EQ(!__builtin_sub_overflow(a, b, &wanted), checkedSignedSub(a, b, &got))
          << a << " - " << b;
      EXPECT_EQ(wanted, got);
      EXPECT_EQ(!__builtin_mul_overflow(a, b, &wanted), checkedSignedMul(a, b, &got))
          << a << " * " << b;
      EXPECT_EQ(wanted, got);
    }
  }
}

#if defined(__x86_64__)
TEST(Portable, a_processor_that_is_asked_has_what_the_compiler_knows) {
  const X86Features asked = x86FeaturesAsked();
  const X86Features known = x86Features();
  EXPECT_EQ(known.baseline, asked.baseline);
  EXPECT_EQ(known.avx2, asked.avx2);
  EXPECT_EQ(known.avx512, asked.avx512);
}
#endif

}  // namespace
}  // namespace oriel_internal::test::test_portable

namespace oriel_internal::test::test_xz {

// Packed data is unpacked correctly, without access outside the buffers. The files are made by CMake's own compressor
// when the tests are configured (tests/CMakeLists.txt).

namespace {

using Bytes = std::vector<uint8_t>;

Bytes readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

class Xz : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    plain_ = readFile(std::string(ORIEL_XZ_DATA "/") + GetParam());
    packed_ = readFile(std::string(ORIEL_XZ_DATA "/") + GetParam() + ".xz");
  }
  // Allocations of the exact sizes, so that a sanitizer detects every access outside.
  bool unpack(const Bytes& in, size_t out_bytes) {
    const std::unique_ptr<uint8_t[]> exact(new uint8_t[in.size()]);
    std::copy(in.begin(), in.end(), exact.get());
    out_.assign(out_bytes, 0xAA);
    out_.shrink_to_fit();
    return unpackXz(exact.get(), in.size(), out_.data(), out_bytes, work_.get());
  }

  Bytes plain_, packed_, out_;
  const std::unique_ptr<XzWork> work_ = std::make_unique<XzWork>();
};

TEST_P(Xz, is_what_was_packed) {
  ASSERT_FALSE(plain_.empty());
  ASSERT_TRUE(unpack(packed_, plain_.size()));
  EXPECT_EQ(out_, plain_);
}

TEST_P(Xz, of_another_size_is_refused) {
  EXPECT_FALSE(unpack(packed_, plain_.size() - 1));
  EXPECT_FALSE(unpack(packed_, plain_.size() + 1));
  EXPECT_FALSE(unpack(packed_, 0));
}

// Index and footer come after the needed part; they are less than 64 bytes.
TEST_P(Xz, truncated_anywhere_is_refused) {
  const size_t step = 1 + packed_.size() / 4000;
  for (size_t bytes = 0; bytes + 64 < packed_.size(); bytes += step) {
    EXPECT_FALSE(
        unpack({packed_.begin(), packed_.begin() + static_cast<ptrdiff_t>(bytes)}, plain_.size()))
        << bytes;
  }
}

TEST_P(Xz, with_any_bit_flipped_is_refused_or_the_same) {
  const size_t step = 1 + packed_.size() / 250;
  for (size_t at = 0; at < packed_.size(); at += step) {
    for (int bit = 0; bit < 8; ++bit) {
      packed_[at] ^= static_cast<uint8_t>(1 << bit);
      if (unpack(packed_, plain_.size())) {
        EXPECT_EQ(out_, plain_) << at;  // a number that nothing depends on
      }
      packed_[at] ^= static_cast<uint8_t>(1 << bit);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Packed, Xz, testing::Values("text", "one_byte", "random", "mixed"),
                         [](const auto& named) { return named.param; });

TEST(XzFile, of_nothing_or_of_something_else_is_refused) {
  const std::unique_ptr<XzWork> work = std::make_unique<XzWork>();
  uint8_t out[4];
  const uint8_t zeros[64] = {};
  EXPECT_FALSE(unpackXz(zeros, 0, out, 4, work.get()));
  EXPECT_FALSE(unpackXz(zeros, sizeof(zeros), out, 4, work.get()));
}

}  // namespace
}  // namespace oriel_internal::test::test_xz
