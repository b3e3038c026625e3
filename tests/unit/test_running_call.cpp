// Limits on heat: a session rests after its work, and a cancel ends the rest.
#include <gtest/gtest.h>

#include "exec/running_call.h"
#include "os/os.h"

namespace oriel_internal::test::test_running_call {
namespace {

TEST(RunningCall, without_limits_it_never_waits) {
  const SessionContext context;
  RunningCall call(context);
  call.begin();
  call.worked(1e6);
  call.wrote();
  EXPECT_FALSE(call.isHot());
}

TEST(RunningCall, rests_as_long_as_the_duty_cycle_asks_for) {
  SessionContext context;
  context.duty = 0.25;
  RunningCall call(context);
  call.begin();
  const double begin = nowMs();
  call.worked(10);
  EXPECT_TRUE(call.isHot());
  call.coolDown();
  EXPECT_GE(nowMs() - begin, 30);
  EXPECT_FALSE(call.isHot());
}

TEST(RunningCall, tokens_come_no_faster_than_the_limit) {
  SessionContext context;
  context.max_tokens_per_s = 100;
  RunningCall call(context);
  call.begin();
  const double begin = nowMs();
  for (int i = 0; i < 6; ++i) {
    call.wrote();
    call.coolDown();
  }
  EXPECT_GE(nowMs() - begin, 60);
}

TEST(RunningCall, a_cancel_ends_the_rest) {
  SessionContext context;
  context.duty = 0.01;
  RunningCall call(context);
  call.begin();
  call.worked(1e9);  // rests for years
  EXPECT_TRUE(call.isHot());
  call.cancel();
  call.coolDown();
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, call.check().code());
}

}  // namespace
}  // namespace oriel_internal::test::test_running_call
