// Conversations that are rebuilt from transcripts: stopped, refused, or with a lost device.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "support/allocators.h"
#include "support/files.h"
#include "support/recovery.h"
#include "support/target.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_reading_again {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

/// Stops a call after this many progress reports; 0: never.
struct Stop {
  uint32_t at = 0;
  uint32_t told = 0;

  SessionOptions options() {
    SessionOptions options;
    options.progress = [](uint64_t, uint64_t, void* user) {
      Stop& self = *static_cast<Stop*>(user);
      return ++self.told == self.at ? 1 : 0;
    };
    options.progress_user = this;
    return options;
  }
};

class ReadingAgain : public ScratchFolder {
 protected:
  Options options() {
    Options options = sessionOptions(&log, 48, 8);
    options.set("transcript", 32768);
    return options;
  }
  static void exchange(const SessionPtr& session, const std::string& text) {
    ASSERT_EQ(ORIEL_OK, say(session, text));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
  }
  /// A mark "x" after two exchanges, then enough text to move the window past it.
  void talk(const SessionPtr& session) {
    exchange(session, "My name is Ada.");
    exchange(session, "I like tea.");
    ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "x"));
    at_mark = transcriptOf(session);
    for (uint32_t i = 0; i < 6; ++i) {
      exchange(session, "Tell me a story.");
    }
    ASSERT_EQ(ORIEL_ERROR_CONTEXT,
              oriel_session_go_back(session.get(), ORIEL_BACK_TO_MARK, 0, "x", 0));
    log.lines.clear();
  }
  static oriel_status goBack(const SessionPtr& session) {
    return oriel_session_go_back(session.get(), ORIEL_BACK_TO_MARK, 0, "x", ORIEL_READ_AGAIN);
  }
  static void expectSame(const SessionPtr& expected, const SessionPtr& session) {
    EXPECT_EQ(positionOf(expected), positionOf(session));
    EXPECT_EQ(transcriptOf(expected), transcriptOf(session));
    EXPECT_EQ(logitsOf(expected), logitsOf(session));
    EXPECT_EQ(generateIds(expected, 8), generateIds(session, 8));
  }
  static std::string levelOf(const ModelPtr& model) { return describe(model)["resident"]["level"]; }
  static oriel_status resume(const ModelPtr& model) {
    return oriel_resume(model.get(), nullptr, nullptr);
  }

  CapturedLog log;
  std::string at_mark;
};

TEST_F(ReadingAgain, the_transcript_keeps_what_a_cancel_left_unread) {
  Stop stop;
  const SessionOptions watched = stop.options();
  Twins twins(kTrained, options(), &watched);
  ASSERT_TRUE(twins.ok());
  twins.both([this](const SessionPtr& session) { talk(session); });
  ASSERT_EQ(ORIEL_OK, goBack(twins.other));
  ASSERT_EQ(at_mark, transcriptOf(twins.other));
  stop = {3, 0};
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, goBack(twins.mine));
  EXPECT_LT(positionOf(twins.mine), positionOf(twins.other));
  EXPECT_EQ(at_mark, transcriptOf(twins.mine));
  // A rebuild is not reported as a new session's reading.
  const SessionPtr& mine = twins.mine;
  if (positionOf(mine) == 0) {
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_transcript_import(mine.get(), "[]", 2));
  }
  ASSERT_EQ(ORIEL_OK, resume(twins.losing.model));
  expectSame(twins.other, twins.mine);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(mine.get()));
  EXPECT_EQ("[]", transcriptOf(mine));
}

TEST_F(ReadingAgain, the_mark_that_is_gone_to_stays) {
  const Options with = options();
  const ModelPtr model = loadModel(kTrained, with);
  const SessionPtr session = newSession(model);
  talk(session);
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "behind"));
  ASSERT_EQ(ORIEL_OK, goBack(session));
  EXPECT_EQ(Json::array({{{"name", "x"}, {"position", positionOf(session)}}}),
            describe(session)["marks"]);
}

TEST_F(ReadingAgain, a_cancel_at_the_beginning_changes_nothing_that_was_said) {
  Stop stop;
  const SessionOptions watched = stop.options();
  Twins twins(kTrained, options(), &watched);
  ASSERT_TRUE(twins.ok());
  talk(twins.mine);
  stop = {1, 0};
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, goBack(twins.mine));
  EXPECT_EQ(at_mark, transcriptOf(twins.mine));
  // Taking back a message removes nothing else.
  stop = {1, 0};
  ASSERT_EQ(ORIEL_ERROR_CANCELLED,
            say(twins.mine, "This has more tokens than one batch has room for."));
  EXPECT_EQ(at_mark, transcriptOf(twins.mine));
  ASSERT_EQ(ORIEL_OK, say(twins.mine, "Hello!"));
  const uint64_t position = positionOf(twins.mine);
  ASSERT_EQ(ORIEL_OK, resume(twins.losing.model));
  EXPECT_EQ(position, positionOf(twins.mine)) << "something was said since";
}

TEST_F(ReadingAgain, memory_that_is_refused_costs_no_text) {
  Ledger ledger;
  Options with = options();
  with.allocator = ledger.allocator();
  Twins twins(kTrained, with);
  ASSERT_TRUE(twins.ok());
  talk(twins.other);
  ASSERT_EQ(ORIEL_OK, goBack(twins.other));
  uint32_t refused = 0;
  for (uint32_t nth = 1; nth < 100; ++nth) {
    SCOPED_TRACE(nth);
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(twins.mine.get()));
    talk(twins.mine);
    const uint64_t position = positionOf(twins.mine);
    const std::string said = transcriptOf(twins.mine);
    ledger.calls = 0;
    ledger.refuse_nth = nth;
    const oriel_status status = goBack(twins.mine);
    ledger.refuse_nth = 0;
    if (status == ORIEL_OK) {
      break;
    }
    ++refused;
    EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status);
    const bool begun = positionOf(twins.mine) != position;
    EXPECT_EQ(begun ? at_mark : said, transcriptOf(twins.mine));
    ASSERT_EQ(ORIEL_OK, begun ? resume(twins.losing.model) : goBack(twins.mine));
    EXPECT_EQ(positionOf(twins.other), positionOf(twins.mine));
    EXPECT_EQ(logitsOf(twins.other), logitsOf(twins.mine));
  }
  EXPECT_LT(0u, refused);
  expectSame(twins.other, twins.mine);
}

TEST_F(ReadingAgain, a_device_that_is_lost_is_recovered_to_where_it_was_to_go) {
  size_t number = 0;
  for (const uint32_t after : {3u, 1u, 7u}) {
    if (isOthersTurn(number++, false)) {
      continue;
    }
    SCOPED_TRACE(after);
    Twins twins(kTrained, options());
    ASSERT_TRUE(twins.ok());
    twins.both([this](const SessionPtr& session) { talk(session); });
    ASSERT_EQ(ORIEL_OK, goBack(twins.other));
    twins.losing.lose(Work::kRun, after);
    ASSERT_EQ(ORIEL_ERROR_DEVICE, goBack(twins.mine));
    EXPECT_EQ(at_mark, transcriptOf(twins.mine));
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(positionOf(twins.mine), result.tokens_read);
    EXPECT_EQ(0u, result.exact);
    expectSame(twins.other, twins.mine);
  }
}

TEST_F(ReadingAgain, a_device_that_is_lost_before_it_begins_costs_nothing) {
  Twins twins(kTrained, options());
  ASSERT_TRUE(twins.ok());
  twins.both([this](const SessionPtr& session) { talk(session); });
  twins.losing.lose(Work::kForget, 1);
  ASSERT_EQ(ORIEL_ERROR_DEVICE, oriel_session_go_back(twins.mine.get(), ORIEL_BACK_BY_TURNS, 7,
                                                      nullptr, ORIEL_READ_AGAIN));
  (void)recoveredOf(twins.mine.get());
  expectSame(twins.other, twins.mine);
  EXPECT_EQ(ORIEL_OK, goBack(twins.mine));
}

TEST_F(ReadingAgain, the_folder_of_what_comes_back_may_be_gone) {
  Options with = options();
  with.window_tokens = 128;
  with.set("retrieval", 4u << 20);
  const std::string folder = path("recall");
  std::filesystem::create_directories(folder);
  with.set("retrieval_folder", folder);
  const ModelPtr model = loadModel(kTrained, with);
  const SessionPtr session = newSession(model);
  exchange(session, "My name is Ada.");
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "x"));
  at_mark = transcriptOf(session);
  for (uint32_t i = 0; i < 12; ++i) {
    exchange(session, "Tell me a story.");
  }
  std::filesystem::remove_all(folder);
  ASSERT_EQ(ORIEL_OK, goBack(session)) << log.errors();
  EXPECT_EQ(at_mark, transcriptOf(session));
}

TEST_F(ReadingAgain, what_a_prefix_holds_is_not_read_once_more) {
  Options with = options();
  with.set("prefix_tokens", 24);
  const ModelPtr model = loadModel(kTrained, with);
  const SessionPtr session = newSession(model);
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session.get(), "system", "Be kind.", 8));
  ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), session.get())) << log.errors();
  const uint64_t prefix = positionOf(session);
  ASSERT_EQ(ORIEL_OK, say(session, "My name is Ada."));
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "x"));
  const uint64_t mark = positionOf(session);
  for (uint32_t i = 0; i < 6; ++i) {
    exchange(session, "Tell me a story.");
  }
  ASSERT_EQ(ORIEL_OK, goBack(session)) << log.errors();
  EXPECT_LT(prefix, mark);
  EXPECT_EQ(mark, positionOf(session));
}

// ---- After ORIEL_TRIM_ALL ------------------------------------------------------------------------

TEST_F(ReadingAgain, no_refused_memory_leaves_a_session_behind_tokens_that_are_gone) {
  Ledger ledger;
  Options with = options();
  with.allocator = ledger.allocator();
  Twins twins(kTrained, with);
  ASSERT_TRUE(twins.ok());
  const ModelPtr& model = twins.losing.model;
  talk(twins.other);
  const std::string said = transcriptOf(twins.other);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(twins.other.get()));
  ASSERT_EQ(ORIEL_OK, oriel_transcript_import(twins.other.get(), said.data(), said.size()));
  talk(twins.mine);
  ASSERT_EQ(said, transcriptOf(twins.mine));
  uint32_t there = 0;
  for (uint32_t nth = 1; nth < 200; nth += allCases() ? 1 : 2) {
    SCOPED_TRACE(nth);
    ASSERT_EQ(ORIEL_OK, oriel_trim(model.get(), ORIEL_TRIM_ALL, nullptr));
    ledger.calls = 0;
    ledger.refuse_nth = nth;
    const oriel_status status = resume(model);
    ledger.refuse_nth = 0;
    EXPECT_EQ(said, transcriptOf(twins.mine));
    if (status == ORIEL_OK) {
      break;
    }
    EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status);
    if (levelOf(model) == "none") {
      ++there;
      EXPECT_LT(positionOf(twins.mine), positionOf(twins.other));
    }
    ASSERT_EQ(ORIEL_OK, resume(model));
    EXPECT_EQ(positionOf(twins.other), positionOf(twins.mine));
    EXPECT_EQ(logitsOf(twins.other), logitsOf(twins.mine));
  }
  EXPECT_LT(0u, there);
  expectSame(twins.other, twins.mine);
}

TEST_F(ReadingAgain, a_device_that_is_lost_in_a_resume_costs_no_conversation) {
  for (const uint32_t after : {1u, 4u}) {
    SCOPED_TRACE(after);
    Options with = options();
    with.sessions = 2;
    LosableModel losing(kTrained, with);
    SessionPtr sessions[] = {newSession(losing.model), newSession(losing.model)};
    std::string said[2];
    for (uint32_t i = 0; i < 2; ++i) {
      exchange(sessions[i], i == 0 ? "My name is Ada." : "My name is Ida.");
      said[i] = transcriptOf(sessions[i]);
    }
    ASSERT_EQ(ORIEL_OK, oriel_trim(losing.model.get(), ORIEL_TRIM_ALL, nullptr));
    losing.lose(Work::kRun, after);
    ASSERT_EQ(ORIEL_ERROR_DEVICE, resume(losing.model));
    for (uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(said[i], transcriptOf(sessions[i]));
      (void)recoveredOf(sessions[i].get());
      EXPECT_EQ(said[i], transcriptOf(sessions[i]));
      EXPECT_LT(10u, positionOf(sessions[i]));
      EXPECT_EQ(ORIEL_OK, say(sessions[i], "What is my name?"));
    }
  }
}

/// A log callback that blocks in one line until released.
struct Slow {
  std::atomic<bool> holds{false};
  std::atomic<bool> inside{false};

  static void write(oriel_log_level, const char* line, void* user) {
    Slow& self = *static_cast<Slow*>(user);
    if (self.holds && std::string(line).find("oriel_resume first") != std::string::npos) {
      self.inside = true;
      while (self.holds) {
        std::this_thread::yield();
      }
      self.inside = false;
    }
  }
};

TEST_F(ReadingAgain, a_call_that_is_being_refused_costs_no_conversation) {
  Slow slow;
  Options with = options();
  with.log = Slow::write;
  with.log_user = &slow;
  const ModelPtr model = loadModel(kTrained, with);
  const SessionPtr session = newSession(model);
  exchange(session, "My name is Ada.");
  const std::string said = transcriptOf(session);
  ASSERT_EQ(ORIEL_OK, oriel_trim(model.get(), ORIEL_TRIM_ALL, nullptr));
  ASSERT_EQ(ORIEL_OK, resume(model));
  const uint64_t position = positionOf(session);
  ASSERT_EQ(ORIEL_OK, oriel_trim(model.get(), ORIEL_TRIM_ALL, nullptr));
  slow.holds = true;
  oriel_status refused = ORIEL_OK;
  std::thread other([&] { refused = say(session, "Hello?"); });
  while (!slow.inside) {
    std::this_thread::yield();
  }
  // The log callback of the refused call is still running, but the session is free.
  EXPECT_EQ(ORIEL_OK, resume(model));
  EXPECT_EQ(position, positionOf(session));
  EXPECT_EQ(said, transcriptOf(session));
  slow.holds = false;
  other.join();
  EXPECT_EQ(ORIEL_ERROR_STATE, refused);
  EXPECT_EQ(position, positionOf(session));
  EXPECT_EQ(said, transcriptOf(session));
}

}  // namespace
}  // namespace oriel_internal::test::test_reading_again
