#include <gtest/gtest.h>

#include <cmath>

#include "support/distances.h"

namespace oriel_internal::test::test_distances {
namespace {

TEST(Distances, the_worse_of_two_errors_is_the_greater_one) {
  EXPECT_EQ(2.0, worse(1, 2));
  EXPECT_EQ(2.0, worse(2, 1));
  EXPECT_EQ(HUGE_VAL, worse(2, HUGE_VAL));
}

TEST(Distances, what_is_not_a_number_stays_the_worst) {
  EXPECT_TRUE(std::isnan(worse(1, NAN)));
  EXPECT_TRUE(std::isnan(worse(NAN, 1)));
  EXPECT_TRUE(std::isnan(worse(worse(worse(0, NAN), 2), HUGE_VAL)));
}

}  // namespace
}  // namespace oriel_internal::test::test_distances
