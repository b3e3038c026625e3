// Replacements of compiler builtins, for Microsoft's compiler, give equal results.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "cpu/x86_features.h"

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
