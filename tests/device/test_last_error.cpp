// The line of the last failed call, kept by the object of the call.
#include <gtest/gtest.h>

#include <thread>

#include "oriel/advanced.h"
#include "support/losing_executor.h"
#include "support/sessions.h"

namespace oriel_internal::test::test_last_error {
namespace {

std::string of(const oriel_session* session) { return oriel_session_last_error(session); }
std::string of(const oriel_model* model) { return oriel_model_last_error(model); }

class LastError : public testing::Test {
 protected:
  void SetUp() override {
    loaded_ = load(kTrained, cpuOptions(&log_));
    ASSERT_TRUE(loaded_.session) << log_.errors();
  }
  oriel_session* session() const { return loaded_.session.get(); }
  oriel_model* model() const { return loaded_.model.get(); }
  std::string lastLine() const { return log_.lines.empty() ? "" : log_.lines.back().text; }

  CapturedLog log_;
  Loaded loaded_;
};

TEST_F(LastError, is_empty_before_the_first_and_then_what_the_log_was_told) {
  EXPECT_EQ("", of(session()));
  EXPECT_EQ("", of(model()));
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  EXPECT_EQ(lastLine(), of(session()));
  EXPECT_NE(std::string::npos, of(session()).find("token id -1 is outside the vocabulary"));
  EXPECT_EQ("", of(model())) << "it was the session's";
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1, 2, 3}));
  EXPECT_NE("", of(session())) << "until the next failure";
  ASSERT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(session(), 100));
  EXPECT_EQ(lastLine(), of(session()));
  EXPECT_EQ(std::string::npos, of(session()).find("vocabulary"));
}

TEST_F(LastError, is_kept_of_every_kind_of_failure) {
  const auto expectKept = [&](oriel_status expected, oriel_status status) {
    EXPECT_EQ(expected, status);
    EXPECT_EQ(lastLine(), of(session()));
    log_.clear();
  };
  ReplyOptions options = greedyOptions(1);
  options.set("top_p", 2);
  expectKept(ORIEL_ERROR_STATE,
             oriel_session_generate(session(), nullptr, nullptr, nullptr, nullptr));
  expectKept(ORIEL_ERROR_ARGUMENT,
             oriel_session_generate(session(), &options, nullptr, nullptr, nullptr));
  options = greedyOptions(1);
  options.set("grammar", "root ::= [a]");
  expectKept(ORIEL_ERROR_STATE, oriel_chat_reply(session(), &options, nullptr, nullptr, nullptr));
  expectKept(ORIEL_ERROR_ARGUMENT, oriel_chat_add(session(), nullptr, "{", 1));
  expectKept(ORIEL_ERROR_TEXT, oriel_session_append_text(session(), "\xff", 1, 0));
  expectKept(ORIEL_ERROR_FORMAT, oriel_snapshot_restore(session(), "not one", 7, 0, nullptr));
  expectKept(ORIEL_ERROR_IO, oriel_session_restore(session(), "/nowhere/at/all", 0, nullptr));
  expectKept(ORIEL_ERROR_IO, oriel_session_save(session(), "/nowhere/at/all", 0));
  int32_t id = 0;
  size_t needed = 0;
  expectKept(ORIEL_ERROR_CONTEXT, oriel_session_get_tokens(session(), 5, &id, 1, &needed));
  EXPECT_EQ("", of(model()));
}

TEST_F(LastError, of_the_model_is_of_calls_on_the_model) {
  const int32_t wrong = -1;
  char text[8];
  size_t needed = 0;
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_detokenize(model(), &wrong, 1, 0, text, sizeof(text), &needed));
  EXPECT_EQ(lastLine(), of(model()));
  oriel_session* second = nullptr;
  ASSERT_EQ(ORIEL_ERROR_STATE, oriel_session_create(model(), nullptr, &second));
  EXPECT_EQ(lastLine(), of(model()));
  EXPECT_EQ("", of(session()));
}

TEST_F(LastError, stays_where_a_call_fails_without_a_line) {
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  const std::string line = of(session());
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_snapshot_save(session(), nullptr, 0, &needed));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append(session(), nullptr, 1, nullptr, nullptr));
  const std::vector<int32_t> ids(64, 7);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_session_append(
                                       session(), ids.data(), ids.size(),
                                       [](size_t, const float*, size_t, void* self) {
                                         oriel_session_cancel(static_cast<oriel_session*>(self));
                                         return 0;
                                       },
                                       session()));
  EXPECT_EQ(line, of(session()));
  EXPECT_STREQ("", oriel_session_last_error(nullptr));
  EXPECT_STREQ("", oriel_model_last_error(nullptr));
}

// A line may quote the conversation.
TEST_F(LastError, is_forgotten_with_the_conversation) {
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded_, {-1}));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session()));
  EXPECT_EQ("", of(session()));
}

/// An app whose log callback calls the session for each error line.
struct AppInTheLog {
  oriel_session* session = nullptr;
  std::vector<std::string> lines;
  std::string last() const { return of(session); }
  static void onLog(oriel_log_level level, const char* message, void* user) {
    AppInTheLog* const self = static_cast<AppInTheLog*>(user);
    if (level != ORIEL_LOG_ERROR || self->session == nullptr) {
      return;
    }
    self->lines.emplace_back(message);
    if (self->lines.size() == 1) {
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self->session));
      EXPECT_EQ(self->lines.back(), self->last()) << "of the call that was refused";
    }
  }
};

TEST(LastErrorOfTheLog, is_of_the_call_that_failed_and_not_of_those_that_its_log_made) {
  AppInTheLog app;
  Options options = cpuOptions(nullptr);
  options.log = AppInTheLog::onLog;
  options.log_user = &app;
  const Loaded loaded = load(kRandom, options);
  app.session = loaded.session.get();
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded, {-1}));
  ASSERT_EQ(2u, app.lines.size());
  EXPECT_NE(std::string::npos, app.lines[1].find("in the middle of another call"));
  EXPECT_EQ(app.lines[0], app.last());
}

TEST(LastErrorOfTheLog, is_the_line_of_a_device_that_all_sessions_share) {
  AppInTheLog app;
  Options options = cpuOptions(nullptr);
  options.log = AppInTheLog::onLog;
  options.log_user = &app;
  LosableModel losable(kRandom, options);
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(losable.model.get(), nullptr, &session));
  app.session = session;
  losable.front->log = losable.model->device_log.log();
  losable.lose(Work::kRun, 1);
  const int32_t id = 1;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_append(session, &id, 1, nullptr, nullptr));
  ASSERT_EQ(2u, app.lines.size());
  EXPECT_NE(std::string::npos, app.lines[0].find("it was lost"));
  EXPECT_EQ(app.lines[0], app.last());
  losable.mend();
  app.session = nullptr;
  oriel_session_destroy(session);
}

TEST(LastErrorAlone, needs_no_log) {
  const Loaded loaded = load(kRandom, cpuOptions(nullptr));
  ASSERT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded, {-1}));
  EXPECT_NE(std::string::npos, of(loaded.session.get()).find(": use ids from 0 to "));
}

TEST(LastErrorAlone, of_a_model_may_come_from_several_threads) {
  const Loaded loaded = load(kRandom, cpuOptions(nullptr));
  std::vector<std::thread> threads;
  for (int32_t wrong = -2; wrong < 0; ++wrong) {
    threads.emplace_back([&loaded, wrong] {
      char text[8];
      size_t needed = 0;
      for (int i = 0; i < 2000; ++i) {
        (void)oriel_detokenize(loaded.model.get(), &wrong, 1, 0, text, sizeof(text), &needed);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::string line = of(loaded.model.get());
  EXPECT_NE(std::string::npos, line.find(": ")) << line;
}

}  // namespace
}  // namespace oriel_internal::test::test_last_error
