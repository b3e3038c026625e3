// How much work goes into a submission.
#include <gtest/gtest.h>

#include "exec/pace.h"
#include "plan/op.h"

namespace oriel_internal::test::test_pace {
namespace {

/// A device that does `rate` of work in a millisecond, given `total` over and over in submissions of no
/// less than `piece`; the longest of the last round, in milliseconds.
double longest(double rate, double total, double piece, Pace* pace, int* submissions) {
  double most = 0;
  for (int round = 0; round < 20; ++round) {
    most = 0;
    *submissions = 0;
    for (double left = total; left > 0; ++*submissions) {
      double work = 0;
      while (left > 0 && (work == 0 || work + piece <= pace->work())) {
        work += piece;
        left -= piece;
      }
      pace->took(work, work / rate);
      most = std::max(most, work / rate);
    }
  }
  return most;
}

TEST(Pace, settles_between_half_and_all_of_the_time_a_submission_may_take) {
  for (const double rate : {1e5, 1e6, 7e6, 1e8}) {
    SCOPED_TRACE(rate);
    Pace pace;
    int submissions = 0;
    const double ms = longest(rate, 1000 * rate, 2 * rate, &pace, &submissions);
    EXPECT_LE(ms, kSubmissionMs);
    EXPECT_GE(ms, kSubmissionMs / 2 - 2);
  }
}

TEST(Pace, gives_a_fast_device_everything_at_once) {
  Pace pace;
  int submissions = 0;
  longest(1e9, 7e9, 7e7, &pace, &submissions);
  EXPECT_EQ(1, submissions);
}

TEST(Pace, recovers_from_one_that_was_late_and_from_pieces_that_are_too_long_by_themselves) {
  Pace pace;
  int submissions = 0;
  longest(7e6, 7e9, 1e7, &pace, &submissions);
  const double settled = pace.work();
  pace.took(settled, 4000);
  EXPECT_GE(pace.work(), settled / 2);
  for (int i = 0; i < 100; ++i) {
    pace.took(7e8, 100);  // a piece
  }
  EXPECT_LE(longest(7e6, 7e9, 1e7, &pace, &submissions), kSubmissionMs);
  EXPECT_GE(pace.work(), settled / 2);
}

TEST(OpWork, of_a_product_is_its_multiplications_and_of_attention_what_is_seen) {
  Op op;
  op.kind = OpKind::kMatmul;
  op.push.matmul.rows = 1536;
  op.push.matmul.units = 18;  // 576 columns
  EXPECT_NEAR(opWork(op, 64).most(), 1536.0 * 576 * 64, 1e5);
  EXPECT_NEAR(opWork(op, 1).most(), 1536.0 * 576, 1e5);

  Op attention;
  attention.kind = OpKind::kAttention;
  attention.push.attention = {};
  attention.push.attention.n_heads = 9;
  attention.push.attention.head_dim = 64;
  attention.push.attention.sinks = 4;
  attention.push.attention.ring = 96;
  attention.push.attention.view = 2;
  // A key and a value of each token.
  const OpWork work = opWork(attention, 8);
  EXPECT_NEAR(work.at(50), 8.0 * 9 * 64 * 2 * 50, 1e5);
  EXPECT_NEAR(work.most(), 8.0 * 9 * 64 * 2 * 100, 1e5);
  EXPECT_EQ(2u, work.view);

  // Once, however many rows there are.
  Op top;
  top.kind = OpKind::kTopBlocks;
  top.push.top = {50000, 1000, 0};
  EXPECT_EQ(opWork(top, 1).most(), opWork(top, 64).most());
}

}  // namespace
}  // namespace oriel_internal::test::test_pace
