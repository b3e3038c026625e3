// Refusals of a session: one line with the reason, and no change. The rules are the session's own, so all tests use the
// CPU.
#include <gtest/gtest.h>

#include <limits>

#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_session_refusals {
namespace {

RUNS_ON(kEachDevice);
TEST(Session, an_empty_session_has_nothing_to_show_or_continue) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count));
  EXPECT_EQ(1u, errorLines(log));
  log.clear();
  EXPECT_EQ(ORIEL_ERROR_STATE, listen(oriel_session_generate, loaded, greedyOptions(1)).status);
  EXPECT_EQ(1u, errorLines(log));
  // Appending nothing is an allowed no-op.
  EXPECT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count));
}

RUNS_ON(kEachDevice);
TEST(Session, text_that_is_not_utf8_is_refused_with_one_line) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  for (const std::string bad : {"abc\xff", "\xc3", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80"}) {
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_TEXT,
              oriel_session_append_text(loaded.session.get(), bad.data(), bad.size(), 0));
    EXPECT_EQ(1u, errorLines(log));
    EXPECT_EQ(ORIEL_ERROR_TEXT, add(loaded, "user", bad));
    EXPECT_EQ(2u, errorLines(log));
    EXPECT_NE(std::string::npos, log.errors().find(": "));
  }
  EXPECT_EQ(0u, statsOf(loaded).position);
  const std::string with_nul("a\0b", 3);
  EXPECT_EQ(ORIEL_OK,
            oriel_session_append_text(loaded.session.get(), with_nul.data(), with_nul.size(), 0));
  EXPECT_EQ(tokens(loaded, with_nul, 0).size(), statsOf(loaded).position);
}

RUNS_ON(kEachDevice);
TEST(Session, ids_outside_the_vocabulary_are_refused_and_nothing_changes) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  const std::vector<float> before = logitsOf(loaded);
  const auto ignore = [](size_t, const float*, size_t, void*) { return 0; };
  for (const int32_t bad :
       {-1, 512, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    // The invalid id is in a later chunk: nothing may have been done before it is found.
    std::vector<int32_t> ids(40, 5);
    ids[39] = bad;
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, append(loaded, ids));
    EXPECT_EQ(1u, errorLines(log));
    EXPECT_TRUE(log.says(std::to_string(bad)));
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_append(loaded.session.get(), ids.data(), ids.size(), ignore, nullptr));
    EXPECT_EQ(3u, statsOf(loaded).position);
    EXPECT_EQ(before, logitsOf(loaded));
  }
}

RUNS_ON(kEachDevice);
TEST(Session, there_is_one_at_a_time) {
  CapturedLog log;
  Loaded loaded = load(kRandom, cpuOptions(&log));
  oriel_session* second = nullptr;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(loaded.model.get(), nullptr, &second));
  EXPECT_EQ(nullptr, second);
  EXPECT_EQ(1u, errorLines(log));
  EXPECT_EQ(ORIEL_OK, append(loaded, {1}));
  loaded.session.reset();
  EXPECT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), nullptr, &second));
  oriel_session_destroy(second);
}

RUNS_ON(kEachDevice);
TEST(Session, a_model_without_weights_has_none) {
  CapturedLog log;
  Options options = cpuOptions(&log);
  options.device = "none";
  const ModelPtr model = loadModel(kRandom, options);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(model.get(), nullptr, &session));
  EXPECT_EQ(1u, errorLines(log));
  oriel_plan plan = ORIEL_PLAN_INIT;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_model_get_plan(model.get(), &plan));
  EXPECT_EQ(2u, errorLines(log));  // one line for each call
}

// 64-bit positions must not wrap during a session.
RUNS_ON(kEachDevice);
TEST(Session, positions_that_no_session_can_begin_at_are_refused) {
  CapturedLog log;
  Loaded loaded = load(kRandom, cpuOptions(&log));
  loaded.session.reset();
  const uint64_t most = 1ull << 62;
  for (const char* name : {"first_position", "assumed_tokens"}) {
    SessionOptions options;
    oriel_session* session = nullptr;
    for (const uint64_t position : {most + 1, UINT64_MAX}) {
      options.set(name, position);
      EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded.model.get(), &options, &session));
    }
    options.set(name, most);
    ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &options, &session));
    const SessionPtr owner(session);
    const int32_t ids[] = {1, 2, 3};
    EXPECT_EQ(ORIEL_OK, oriel_session_append(session, ids, 3, nullptr, nullptr));
    const std::vector<uint8_t> snapshot = savedBytes(session);
    EXPECT_EQ(ORIEL_OK, restoreFrom(session, snapshot));
  }
  EXPECT_EQ(4u, errorLines(log));
}

RUNS_ON(kEachDevice);
TEST(Session, structs_without_their_size_are_refused) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1}));
  oriel_model* model = nullptr;
  oriel_options options = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kRandom, &options, &model));
  oriel_plan plan = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_plan_file(kRandom, nullptr, &plan));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_get_plan(loaded.model.get(), &plan));
  oriel_stats stats = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_get_stats(loaded.session.get(), &stats));
  oriel_reply_options sampling = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_generate(loaded.session.get(), &sampling, nullptr, nullptr, nullptr));
  EXPECT_TRUE(log.says("struct_size"));
  oriel_generation result = {};
  sampling = greedyOptions(1);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_generate(loaded.session.get(), &sampling, nullptr, nullptr, &result));
  oriel_session_options session_options = {};
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_create(loaded.model.get(), &session_options, &session));
  EXPECT_EQ(1u, statsOf(loaded).position);
}

RUNS_ON(kEachDevice);
TEST(Session, structs_of_a_newer_app_are_taken_when_what_is_new_is_zero) {
  struct Newer {
    oriel_stats stats;
    uint64_t unknown;
  } stats = {};
  struct NewerOptions {
    oriel_reply_options options;
    uint64_t unknown;
  } options = {greedyOptions(1), 0};
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1}));
  stats.stats.struct_size = sizeof(stats);
  stats.unknown = 42;
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &stats.stats));
  EXPECT_EQ(1u, stats.stats.position);
  EXPECT_EQ(42u, stats.unknown);
  options.options.struct_size = sizeof(options);
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(loaded.session.get(), &options.options, nullptr,
                                             nullptr, nullptr));
  options.unknown = 1;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_generate(loaded.session.get(), &options.options,
                                                         nullptr, nullptr, nullptr));
}

RUNS_ON(kEachDevice);
TEST(Session, sampling_options_out_of_range_are_refused_with_one_line) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1}));
  const auto refused = [&](const ReplyOptions& options) {
    log.clear();
    return listen(oriel_session_generate, loaded, options).status == ORIEL_ERROR_ARGUMENT &&
           errorLines(log) == 1 && statsOf(loaded).position == 1;
  };
  ReplyOptions options = greedyOptions(1);
  options.temperature = -1;
  EXPECT_TRUE(refused(options));
  options.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(refused(options));
  options = greedyOptions(1);
  options.set("top_p", 1.5f);
  EXPECT_TRUE(refused(options));
  options = greedyOptions(1);
  options.set("min_p", 2);
  EXPECT_TRUE(refused(options));
  options = greedyOptions(1);
  options.set("repeat_penalty", std::numeric_limits<float>::infinity());
  EXPECT_TRUE(refused(options));
}

RUNS_ON(kEachDevice);
TEST(Session, null_arguments_are_refused) {
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append(nullptr, nullptr, 0, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_reset(nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_add(nullptr, "user", "", 0));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_generate(nullptr, nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(nullptr, nullptr, nullptr));
  oriel_session_cancel(nullptr);
  oriel_session_destroy(nullptr);
  oriel_model_free(nullptr);
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_append(loaded.session.get(), nullptr, 1, nullptr, nullptr));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_append_text(loaded.session.get(), nullptr, 1, 0));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_add(loaded.session.get(), "user", nullptr, 1));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_chat_add(loaded.session.get(), nullptr, "", 0))
      << "no JSON";
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_logits(loaded.session.get(), nullptr, nullptr));
}

RUNS_ON(kEachDevice);
TEST(Session, a_prefix_that_leaves_no_room_is_a_context_error) {
  CapturedLog log;
  Options options = cpuOptions(&log, 0, 0);
  options.set("prefix_tokens", 512);  // all of the trained context
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, oriel_model_load(kRandom, &options, &model));
  EXPECT_EQ(nullptr, model);
  EXPECT_EQ(1u, errorLines(log));
  options.set("prefix_tokens", 100);
  const Loaded loaded = load(kRandom, options);
  ASSERT_TRUE(loaded.session);
  EXPECT_GE(planOf(loaded).sink_tokens, 100u);
}

}  // namespace
}  // namespace oriel_internal::test::test_session_refusals
