// Calls that may run concurrently with oriel_session_recover, and its errors otherwise.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/losing_executor.h"
#include "support/scratch_folder.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_recovery_calls {
namespace {

namespace fs = std::filesystem;

class RecoveryCalls : public ScratchFolder {
 protected:
  void SetUp() override { open(kTrained); }
  void open(const std::string& path) {
    Options options = sessionOptions(&log, 200, 16);
    options.set("transcript", 16384);
    options.sessions = 2;
    losing = std::make_unique<LosableModel>(path, options);
    losing->front->log = log.log();
    session = makeSession();
  }
  void TearDown() override {
    other.reset();
    session.reset();
    losing.reset();
  }
  SessionPtr makeSession() const {
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(losing->model.get(), nullptr, &made));
    return SessionPtr(made);
  }
  oriel_status say(const char* text) const {
    return oriel_chat_add(session.get(), "user", text, std::strlen(text));
  }
  oriel_status recover() const {
    return oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, nullptr);
  }
  std::vector<float> logits() const {
    const float* values = nullptr;
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_logits(session.get(), &values, &count));
    return {values, values + count};
  }
  void loseIt() const {
    losing->lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  }

  CapturedLog log;
  std::unique_ptr<LosableModel> losing;
  SessionPtr session;
  SessionPtr other;
};

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, what_is_no_request_is_refused) {
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(nullptr, nullptr, 0, nullptr, nullptr, nullptr));
  for (const char* device : {"none", "cpu:1", "vulkan:x", ""}) {
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_recover(session.get(), device, 0, nullptr, nullptr, nullptr))
        << device;
  }
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(session.get(), nullptr, 2, nullptr, nullptr, nullptr));
  oriel_recovered result = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result));
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_session_that_is_not_lost_is_left_alone) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  oriel_recovered result = ORIEL_INIT(oriel_recovered);
  ASSERT_EQ(ORIEL_OK, oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result));
  EXPECT_EQ(0u, result.tokens_read);
  EXPECT_EQ(1u, result.exact);
  EXPECT_EQ(1u, result.same_device);
  EXPECT_LT(0u, result.tokens_held);
  EXPECT_EQ(before, logits());
  EXPECT_NE(nullptr, losing->front) << "the device is the one that it was";
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, not_from_inside_a_callback_of_the_models) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  other = makeSession();
  struct Asked {
    oriel_session* sessions[2];
    oriel_status statuses[2];
  } asked = {{session.get(), other.get()}, {}};
  ReplyOptions options = greedyOptions(2);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(
                          session.get(), &options,
                          [](const oriel_token_event*, void* user) {
                            Asked& self = *static_cast<Asked*>(user);
                            for (uint32_t i = 0; i < 2; ++i) {
                              self.statuses[i] = oriel_session_recover(self.sessions[i], nullptr, 0,
                                                                       nullptr, nullptr, nullptr);
                            }
                            return 0;
                          },
                          &asked, nullptr));
  EXPECT_EQ(ORIEL_ERROR_STATE, asked.statuses[0]);
  EXPECT_EQ(ORIEL_ERROR_STATE, asked.statuses[1]);
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_loss_that_another_call_met_counts) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  losing->lose(Work::kForget, 1);
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_create(losing->model.get(), nullptr, &made));
  ASSERT_EQ(ORIEL_OK, recover());
  EXPECT_EQ(before, logits());
  other = makeSession();
}

TEST_F(RecoveryCalls, the_models_file_may_be_gone_and_come_back) {
  const fs::path path = folder_ / "model.gguf";
  fs::copy_file(kTrained, path);
  session.reset();
  open(path.string());
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  fs::rename(path, path.string() + ".away");
  loseIt();
  log.lines.clear();
  EXPECT_EQ(ORIEL_ERROR_IO, recover());
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  other = makeSession();
  EXPECT_EQ(ORIEL_ERROR_IO,
            oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
  oriel_stats stats = ORIEL_STATS_INIT;
  ASSERT_EQ(ORIEL_OK, oriel_session_get_stats(session.get(), &stats));
  EXPECT_EQ(0u, stats.device_bytes);
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
            oriel_transcript_export(session.get(), nullptr, 0, &needed));
  fs::copy_file(kRandom, path);
  EXPECT_EQ(ORIEL_ERROR_IO, recover()) << "it is another";
  fs::rename(path.string() + ".away", path);
  ASSERT_EQ(ORIEL_OK, recover()) << log.errors();
  EXPECT_EQ(before, logits());
  EXPECT_EQ(ORIEL_OK, oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
}

TEST_F(RecoveryCalls, what_was_trimmed_is_taken_again) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  for (const oriel_trim_level level :
       {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE, ORIEL_TRIM_ALL}) {
    SCOPED_TRACE(level);
    const std::string where = folder_.string();
    ASSERT_EQ(ORIEL_OK, oriel_trim(losing->model.get(), level,
                                   level == ORIEL_TRIM_CACHE ? where.c_str() : nullptr));
    losing->lose(Work::kTakeAgain, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_resume(losing->model.get(), nullptr, nullptr));
    EXPECT_EQ(ORIEL_ERROR_STATE, say("Hello?"));
    oriel_recovered result = ORIEL_INIT(oriel_recovered);
    ASSERT_EQ(ORIEL_OK, oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result))
        << log.errors();
    EXPECT_EQ(level == ORIEL_TRIM_CACHE, result.tokens_read == 0) << "the cache was in a file";
    EXPECT_EQ(before, logits());
    EXPECT_EQ("none", describe(losing->model)["resident"]["level"]);
    losing->watch()->log = log.log();
  }
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_pause_ends) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  loseIt();
  ASSERT_EQ(ORIEL_OK, oriel_pause(losing->model.get()));
  ASSERT_EQ(ORIEL_OK, recover());
  EXPECT_EQ(before, logits());
}

TEST_F(RecoveryCalls, where_no_session_is_left_a_new_one_recovers_the_device) {
  session.reset();
  losing->lose(Work::kForget, 1);
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_create(losing->model.get(), nullptr, &made));
  EXPECT_EQ(nullptr, made);
  session = makeSession();
  other = makeSession();
  ASSERT_TRUE(session != nullptr && other != nullptr) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  EXPECT_EQ(0u, losing->front->asked_since);
  EXPECT_EQ(ORIEL_OK, recover());
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> after = logits();
  session.reset();
  EXPECT_EQ(ORIEL_OK, oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
  session = makeSession();
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  EXPECT_EQ(after, logits());
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_trimmed_model_without_a_session_gets_one_that_recovers_the_device) {
  for (const oriel_trim_level level :
       {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE, ORIEL_TRIM_ALL}) {
    SCOPED_TRACE(level);
    ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
    const std::vector<float> before = logits();
    const std::string where = folder_.string();
    ASSERT_EQ(ORIEL_OK, oriel_trim(losing->model.get(), level,
                                   level == ORIEL_TRIM_CACHE ? where.c_str() : nullptr));
    session.reset();
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(losing->model.get(), nullptr, &made));
    losing->lose(Work::kTakeAgain, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_resume(losing->model.get(), nullptr, nullptr));
    session = makeSession();
    ASSERT_NE(nullptr, session) << log.errors();
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
    ASSERT_EQ(ORIEL_OK, recover()) << log.errors();
    other = makeSession();
    ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
    EXPECT_EQ(before, logits());
    other.reset();
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
    losing->watch()->log = log.log();
  }
}

TEST_F(RecoveryCalls, sessions_recover_at_the_same_time) {
  other = makeSession();
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<int32_t> ids = someIds(40, 400);
  ASSERT_EQ(ORIEL_OK, oriel_session_append(other.get(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> before = logits();
  loseIt();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_append(other.get(), ids.data(), 1, nullptr, nullptr));
  oriel_status status = ORIEL_ERROR_INTERNAL;
  std::thread second(
      [&] { status = oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr); });
  EXPECT_EQ(ORIEL_OK, recover());
  second.join();
  EXPECT_EQ(ORIEL_OK, status);
  EXPECT_EQ(before, logits());
  EXPECT_EQ(ORIEL_OK, oriel_session_append(other.get(), ids.data(), 1, nullptr, nullptr));
}

}  // namespace
}  // namespace oriel_internal::test::test_recovery_calls
