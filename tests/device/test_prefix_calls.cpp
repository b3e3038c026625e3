// oriel_prefix_set(model, NULL) concurrent with other calls, and on a lost device.
#include <gtest/gtest.h>

#include <thread>

#include "support/recovery.h"

namespace oriel_internal::test::test_prefix_calls {
namespace {

uint32_t prefixTokensOf(const ModelPtr& model) { return describe(model)["prefix"]["tokens"]; }

class PrefixCalls : public testing::TestWithParam<uint32_t> {
 protected:
  Options options() {
    Options options = recoveryOptions(&log);
    options.sessions = GetParam();
    options.system_prompt = "You are a pirate.";
    return options;
  }
  CapturedLog log;
};

/// Tries to make a session while its model's memory is overwritten.
class Creating final : public ForwardingExecutor {
 public:
  explicit Creating(oriel_model* model) : ForwardingExecutor(model->executor), model_(model) {}
  Status forget() override {
    std::thread other([this] { status = oriel_session_create(model_, nullptr, &made); });
    other.join();
    return ForwardingExecutor::forget();
  }
  oriel_status status = ORIEL_OK;
  oriel_session* made = nullptr;

 private:
  oriel_model* model_;
};

TEST_P(PrefixCalls, no_session_begins_behind_a_prefix_that_is_being_cleared) {
  if (GetParam() > 1) {
    return;  // at that point a session waits for the device
  }
  const Options with = options();
  const ModelPtr model = loadModel(kTrained, with);
  ASSERT_LT(0u, prefixTokensOf(model));
  Executor* const executor = model->executor;
  Creating creating(model.get());
  model->executor = &creating;
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), nullptr));
  model->executor = executor;
  EXPECT_EQ(ORIEL_ERROR_STATE, creating.status);
  const SessionPtr too_early(creating.made);
  EXPECT_EQ(nullptr, too_early);
  EXPECT_EQ(0u, prefixTokensOf(model));
  const SessionPtr session = newSession(model);
  EXPECT_EQ(0u, positionOf(session));
}

TEST_P(PrefixCalls, a_device_that_is_lost_in_a_clear_leaves_the_prefix_to_be_recovered) {
  LosableModel losing(kTrained, options());
  ASSERT_NE(nullptr, losing.model) << log.errors();
  const uint32_t tokens = prefixTokensOf(losing.model);
  ASSERT_LT(0u, tokens);
  SessionPtr session = newSession(losing.model);
  ASSERT_EQ(ORIEL_OK, say(session, "Who are you?"));
  const std::vector<float> before = logitsOf(session);
  session.reset();
  losing.lose(Work::kForget, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_prefix_set(losing.model.get(), nullptr));
  EXPECT_EQ(tokens, prefixTokensOf(losing.model));
  session = newSession(losing.model);
  (void)recoveredOf(session.get());
  EXPECT_EQ(tokens, positionOf(session));
  ASSERT_EQ(ORIEL_OK, say(session, "Who are you?"));
  EXPECT_EQ(before, logitsOf(session));
  session.reset();
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(losing.model.get(), nullptr));
  EXPECT_EQ(0u, prefixTokensOf(losing.model));
}

INSTANTIATE_TEST_SUITE_P(, PrefixCalls, testing::Values(1u, 3u));

}  // namespace
}  // namespace oriel_internal::test::test_prefix_calls
