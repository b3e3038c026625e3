// Calls from inside callbacks, and from a second thread: those that would change the session are refused.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support/sessions.h"

namespace oriel::test {
namespace {

/// Every call that changes a session, or needs its device.
std::vector<oriel_status> tryEverything(oriel_session* session) {
  static std::vector<uint8_t> room(1 << 22);
  const int32_t id = 1;
  size_t needed = 0;
  const float* logits = nullptr;
  const oriel_generate_options few = greedyOptions(1);
  const auto ignore = [](size_t, const float*, size_t, void*) { return 0; };
  return {oriel_session_append(session, &id, 1),
          oriel_session_append_text(session, "x", 1, 0),
          oriel_session_evaluate(session, &id, 1, ignore, nullptr),
          oriel_session_generate(session, &few, nullptr, nullptr, nullptr),
          oriel_chat_add(session, "user", "x", 1),
          oriel_chat_reply(session, &few, nullptr, nullptr, nullptr),
          oriel_session_logits(session, &logits, &needed),
          oriel_session_rewind(session, 0),
          oriel_session_reset(session),
          oriel_session_save(session, room.data(), room.size(), &needed),
          oriel_session_restore(session, room.data(), room.size()),
          oriel_session_save_file(session, (testing::TempDir() + "oriel-callback.bin").c_str()),
          oriel_session_restore_file(session, (testing::TempDir() + "oriel-callback.bin").c_str())};
}

/// What runs inside callbacks, once.
struct Inside {
  std::function<void()> work;
  uint32_t ran = 0;

  void run() {
    if (work && ran++ == 0) {
      work();
    }
  }
  static int onToken(const oriel_token_event*, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
  static int onLogits(size_t, const float*, size_t, void* user) {
    static_cast<Inside*>(user)->run();
    return 0;
  }
};

class Callbacks : public testing::Test {
 protected:
  void SetUp() override {
    options_ = cpuOptions(&log_);
    loaded_ = load(kTrained, options_);
    ASSERT_TRUE(loaded_.session) << log_.errors();
    ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Tell me a story."));
    log_.clear();
  }
  oriel_session* session() { return loaded_.session.get(); }

  void expectRefused() {
    inside_.work = [this] {
      const size_t before = errorLines(log_);
      const std::vector<oriel_status> statuses = tryEverything(session());
      for (size_t i = 0; i < statuses.size(); ++i) {
        EXPECT_EQ(ORIEL_ERROR_STATE, statuses[i]) << "call " << i;
      }
      EXPECT_EQ(before + statuses.size(), errorLines(log_)) << "one line each";
      // Neither of these crashes, or does anything but say so.
      oriel_session_destroy(session());
      oriel_model_free(loaded_.model.get());
      EXPECT_EQ(before + statuses.size() + 2, errorLines(log_));
      EXPECT_TRUE(log_.says(": "));
    };
  }

  CapturedLog log_;
  oriel_options options_ = {};
  Loaded loaded_;
  Inside inside_;
};

TEST_F(Callbacks, a_token_callback_may_ask_but_change_nothing) {
  const oriel_generate_options options = greedyOptions(12);
  const auto reply = [&] {
    std::vector<int32_t> ids;
    oriel_generation result = {};
    result.struct_size = sizeof(result);
    const uint64_t before = statsOf(loaded_).position;
    EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session(), &options, Inside::onToken, &inside_, &result));
    const uint64_t end = statsOf(loaded_).position;
    ids.resize(end);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(session(), 0, ids.data(), ids.size(), &needed));
    EXPECT_EQ(ORIEL_OK, oriel_session_rewind(session(), before));
    return ids;
  };
  const std::vector<int32_t> expected = reply();
  expectRefused();
  EXPECT_EQ(expected, reply());
  EXPECT_LT(0u, inside_.ran);
}

TEST_F(Callbacks, a_logits_callback_may_ask_but_change_nothing) {
  expectRefused();
  const std::vector<int32_t> ids = someIds(20, 2000);
  EXPECT_EQ(ORIEL_OK,
            oriel_session_evaluate(session(), ids.data(), ids.size(), Inside::onLogits, &inside_));
  EXPECT_EQ(20u, inside_.ran);
  EXPECT_EQ(3u, greedy(loaded_, 3).size());
}

TEST_F(Callbacks, what_may_be_asked_is_answered) {
  inside_.work = [this] {
    const oriel_stats stats = statsOf(loaded_);
    oriel_view view = {};
    view.struct_size = sizeof(view);
    EXPECT_EQ(ORIEL_OK, oriel_session_get_view(session(), &view));
    EXPECT_EQ(stats.position, view.position);
    std::vector<int32_t> ids(512);
    std::vector<uint64_t> turns(256);
    size_t needed = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_turns(session(), turns.data(), turns.size(), &needed));
    EXPECT_EQ(1u, needed);
    EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(session(), 0, ids.data(), ids.size(), &needed));
    EXPECT_EQ(stats.position, needed);
    EXPECT_FALSE(tokens(loaded_, "Words.", 0).empty());
    EXPECT_FALSE(rendered(loaded_, {{"user", "Hello"}}, true).empty());
    oriel_session_cancel(session());
  };
  const oriel_generate_options options = greedyOptions(12);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            oriel_chat_reply(session(), &options, Inside::onToken, &inside_, nullptr));
  EXPECT_LT(0u, inside_.ran);
  EXPECT_EQ("", log_.errors());
}

// An app that answers every error line with the same wrong call again.
TEST(CallbacksOfTheLog, may_not_change_the_session_and_do_not_go_round_for_ever) {
  struct App {
    Loaded loaded;
    uint32_t lines = 0;
    static void onLog(oriel_log_level level, const char*, void* user) {
      App* const self = static_cast<App*>(user);
      if (level != ORIEL_LOG_ERROR || self->loaded.session == nullptr) {
        return;
      }
      ++self->lines;
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self->loaded.session.get()));
      oriel_session_destroy(self->loaded.session.get());
      oriel_model_free(self->loaded.model.get());
    }
  } app;
  oriel_options options = cpuOptions(nullptr);
  options.log = App::onLog;
  options.log_user = &app;
  Loaded loaded = load(kRandom, options);
  app.loaded.model.swap(loaded.model);
  app.loaded.session.swap(loaded.session);
  const int32_t wrong = -1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append(app.loaded.session.get(), &wrong, 1));
  EXPECT_LE(1u, app.lines);
  EXPECT_GE(8u, app.lines);
  EXPECT_EQ(ORIEL_OK, append(app.loaded, {1, 2}));
}

TEST(Model, that_has_a_session_is_not_freed) {
  CapturedLog log;
  Loaded loaded = load(kRandom, cpuOptions(&log));
  oriel_model* const model = loaded.model.get();
  oriel_model_free(model);
  EXPECT_EQ(1u, errorLines(log));
  EXPECT_TRUE(log.says("destroy the session first")) << log.errors();
  EXPECT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  loaded.session.reset();
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
  oriel_session_destroy(session);
  loaded.model.reset();
  EXPECT_EQ(1u, errorLines(log));
}

TEST_F(Callbacks, a_second_thread_is_refused_while_the_first_is_in_a_call) {
  inside_.work = [this] {
    std::thread([this] {
      for (const oriel_status status : tryEverything(session())) {
        EXPECT_EQ(ORIEL_ERROR_STATE, status);
      }
      oriel_session_destroy(session());
    }).join();
  };
  const oriel_generate_options options = greedyOptions(4);
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session(), &options, Inside::onToken, &inside_, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session()));
}

}  // namespace
}  // namespace oriel::test
