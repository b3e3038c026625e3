// Promises of a session, through the public API. Tests of the session's own rules always use the CPU; tests of device
// results use the target.
#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_session {
namespace {

// ---- Stopping ------------------------------------------------------------------------------------

RUNS_ON(kOneDevice);
TEST(Session, another_thread_can_cancel_and_the_session_goes_on_as_if_nothing_had_been) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, sessionOptions(&log, 64));
  ASSERT_TRUE(loaded.session);
  const std::vector<int32_t> prompt = {5, 6, 7, 8, 9};
  ASSERT_EQ(ORIEL_OK, append(loaded, prompt));

  struct Progress {
    Heard heard;
    std::atomic<int> tokens{0};
  } progress;
  std::thread canceller([&] {
    while (progress.tokens.load() < 5) {
      std::this_thread::yield();
    }
    oriel_session_cancel(loaded.session.get());
  });
  ReplyOptions endless = greedyOptions(0);
  endless.set("ignore_stop", true);
  progress.heard.result.struct_size = sizeof(oriel_generation);
  const oriel_status status = oriel_session_generate(
      loaded.session.get(), &endless,
      [](const oriel_token_event* event, void* user) {
        Progress* p = static_cast<Progress*>(user);
        p->tokens.fetch_add(1);
        return hear(event, &p->heard);
      },
      &progress, &progress.heard.result);
  canceller.join();
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, status);
  EXPECT_EQ(ORIEL_STOP_CANCELLED, progress.heard.result.stop_reason);
  const uint32_t n = progress.heard.result.tokens;
  EXPECT_GE(n, 5u);
  EXPECT_EQ(prompt.size() + n, statsOf(loaded).position);

  std::vector<int32_t> ids = progress.heard.ids;
  ids.resize(n);
  const std::vector<int32_t> more = greedy(loaded, 5);
  ids.insert(ids.end(), more.begin(), more.end());
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, append(loaded, prompt));
  EXPECT_EQ(ids, greedy(loaded, n + 5));
}

RUNS_ON(kOneDevice);
TEST(Session, a_cancelled_evaluation_keeps_the_chunks_before) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 200, 16));
  const std::vector<int32_t> ids(100, 7);
  const auto cancel = [](size_t index, const float*, size_t, void* user) {
    if (index == 20) {
      oriel_session_cancel(static_cast<oriel_session*>(user));
    }
    return 0;
  };
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_session_append(loaded.session.get(), ids.data(),
                                                        ids.size(), cancel, loaded.session.get()));
  EXPECT_EQ(16u, statsOf(loaded).position);
  EXPECT_EQ(ORIEL_OK, append(loaded, {1}));
}

RUNS_ON(kOneDevice);
TEST(Session, an_evaluation_that_its_callback_stops_keeps_the_chunk_and_shows_no_more) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 200, 16));
  const std::vector<int32_t> ids(100, 7);
  std::vector<size_t> shown;
  EXPECT_EQ(ORIEL_OK, oriel_session_append(
                          loaded.session.get(), ids.data(), ids.size(),
                          [](size_t index, const float*, size_t, void* user) {
                            static_cast<std::vector<size_t>*>(user)->push_back(index);
                            return index == 20 ? 1 : 0;
                          },
                          &shown));
  EXPECT_EQ(21u, shown.size());
  EXPECT_EQ(20u, shown.back());
  EXPECT_EQ(32u, statsOf(loaded).position);
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count))
      << "those that were shown are of an earlier token";
  EXPECT_EQ(ORIEL_ERROR_STATE,
            oriel_session_generate(loaded.session.get(), nullptr, nullptr, nullptr, nullptr));
  // The last of the chunk's logits is the session's.
  EXPECT_EQ(
      ORIEL_OK,
      oriel_session_append(
          loaded.session.get(), ids.data(), ids.size(),
          [](size_t index, const float*, size_t, void*) { return index == 15 ? 1 : 0; }, nullptr));
  EXPECT_EQ(48u, statsOf(loaded).position);
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(loaded.session.get(), &logits, &count));
}

RUNS_ON(kOneDevice);
TEST(Session, a_callback_stops_after_the_token_it_was_shown) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {5, 6}));
  oriel_generation result = ORIEL_INIT(oriel_generation);
  int seen = 0;
  ReplyOptions options = greedyOptions(50);
  options.set("ignore_stop", true);
  ASSERT_EQ(ORIEL_OK, oriel_session_generate(
                          loaded.session.get(), &options,
                          [](const oriel_token_event*, void* user) {
                            return ++*static_cast<int*>(user) == 3 ? 1 : 0;
                          },
                          &seen, &result));
  EXPECT_EQ(ORIEL_STOP_CALLBACK, result.stop_reason);
  EXPECT_EQ(3u, result.tokens);
  EXPECT_EQ(2u + 3u, statsOf(loaded).position);
  EXPECT_EQ(2u, result.prompt_tokens);
  EXPECT_EQ(4u, greedy(loaded, 4).size());
}

RUNS_ON(kOneDevice);
TEST(Session, a_callback_that_stopped_is_not_called_again_with_the_rest_of_a_character) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  struct Calls {
    int all = 0;
    int after_stop = 0;
    bool stopped = false;
  } calls;
  for (uint64_t seed = 1; seed <= 50 && !calls.stopped; ++seed) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, {5, 6}));
    ReplyOptions options = greedyOptions(50);
    options.set("ignore_stop", true);
    options.greedy = 0;
    options.temperature = 5;
    options.seed = seed;
    ASSERT_EQ(ORIEL_OK, oriel_session_generate(
                            loaded.session.get(), &options,
                            [](const oriel_token_event* event, void* user) {
                              auto* self = static_cast<Calls*>(user);
                              ++self->all;
                              self->after_stop += self->stopped ? 1 : 0;
                              self->stopped = self->stopped || event->text_bytes == 0;
                              return self->stopped ? 1 : 0;
                            },
                            &calls, nullptr));
  }
  EXPECT_TRUE(calls.stopped) << "no token began a character without ending it";
  EXPECT_EQ(0, calls.after_stop);
}

RUNS_ON(kOneDevice);
TEST(Session, max_tokens_is_exact) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {5}));
  for (const uint32_t n : {1u, 2u, 17u}) {
    ReplyOptions options = greedyOptions(n);
    options.set("ignore_stop", true);
    const uint64_t before = statsOf(loaded).position;
    const Heard heard = listen(oriel_session_generate, loaded, options);
    EXPECT_EQ(ORIEL_OK, heard.status);
    EXPECT_EQ(n, heard.result.tokens);
    EXPECT_EQ(n, heard.ids.size());
    EXPECT_EQ(ORIEL_STOP_LENGTH, heard.result.stop_reason);
    EXPECT_EQ(before + n, statsOf(loaded).position);
  }
}

RUNS_ON(kOneDevice);
TEST(Session, a_stop_token_ends_a_generation_unless_told_otherwise) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, append(loaded, {5}));
  const Heard stopped = listen(oriel_session_generate, loaded, wildOptions(20000, 3));
  ASSERT_EQ(ORIEL_STOP_TOKEN, stopped.result.stop_reason);
  EXPECT_EQ(1 + stopped.result.tokens, statsOf(loaded).position);

  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, append(loaded, {5}));
  ReplyOptions through = wildOptions(stopped.result.tokens + 20, 3);
  through.set("ignore_stop", true);
  const Heard whole = listen(oriel_session_generate, loaded, through);
  ASSERT_EQ(ORIEL_STOP_LENGTH, whole.result.stop_reason);
  ASSERT_EQ(stopped.result.tokens + 20, whole.ids.size());
  EXPECT_TRUE(std::equal(stopped.ids.begin(), stopped.ids.end(), whole.ids.begin()));
}

// ---- Positions ------------------------------------------------------------------------------------

RUNS_ON(kEachDevice);
TEST(Session, stats_follow_the_window_as_it_fills_and_slides) {
  CapturedLog log;
  Options options = cpuOptions(&log, 20, 8);
  options.set("sinks", 4);
  const Loaded loaded = load(kRandom, options);
  EXPECT_EQ(24u, statsOf(loaded).window_capacity);
  EXPECT_EQ(0u, statsOf(loaded).window_used);
  for (uint64_t n = 1; n <= 60; ++n) {
    ASSERT_EQ(ORIEL_OK, append(loaded, {static_cast<int32_t>(n)}));
    const oriel_stats stats = statsOf(loaded);
    EXPECT_EQ(n, stats.position);
    EXPECT_EQ(std::min<uint64_t>(n, 24), stats.window_used);
    EXPECT_EQ(n - std::min<uint64_t>(n, 24), stats.evicted);
    EXPECT_EQ(n, countOf(loaded, "submissions"));
  }
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  EXPECT_EQ(0u, statsOf(loaded).position);
  EXPECT_EQ(0u, statsOf(loaded).evicted);
}

TEST(Session, reset_and_a_new_session_start_afresh_and_seeds_reproduce) {
  CapturedLog log;
  Loaded loaded = load(kRandom, sessionOptions(&log, 40, 8));
  ASSERT_TRUE(loaded.session);
  const std::vector<int32_t> prompt = {9, 8, 7, 6, 5, 4, 3, 9, 8, 7, 6, 5};
  const auto speak = [&](uint64_t seed) {
    EXPECT_EQ(ORIEL_OK, append(loaded, prompt));
    ReplyOptions options = wildOptions(50, seed);
    options.set("ignore_stop", true);
    options.set("repeat_penalty", 1.3f);  // remembers tokens: a reset must clear them
    return listen(oriel_session_generate, loaded, options).ids;
  };
  const std::vector<int32_t> first = speak(11);
  const std::vector<float> logits = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  EXPECT_EQ(first, speak(11));
  EXPECT_EQ(logits, logitsOf(loaded));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  EXPECT_NE(first, speak(12));
  loaded.session.reset();
  loaded.session = newSession(loaded.model);
  EXPECT_EQ(first, speak(11));
}

TEST(Session, a_prompt_longer_than_the_window_streams) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, sessionOptions(&log, 32, 16));
  ASSERT_TRUE(loaded.session);
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 150; ++i) {
    prompt.push_back((i * 37 + 11) % 500);
  }
  ASSERT_EQ(ORIEL_OK, append(loaded, prompt));
  EXPECT_EQ(150u - 36u, statsOf(loaded).evicted);
  const std::vector<float> at_once = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  for (const int32_t id : prompt) {
    ASSERT_EQ(ORIEL_OK, append(loaded, {id}));
  }
  EXPECT_LT(relativeL2(at_once, logitsOf(loaded)), 1e-4);
}

RUNS_ON(kOneDevice);
TEST(Session, events_show_the_text_of_the_ids) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, cpuOptions(&log));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me a story."));
  ReplyOptions options = greedyOptions(60);
  options.seed = 4;
  options.greedy = 0;
  const Heard heard = listen(oriel_chat_reply, loaded, options);
  ASSERT_EQ(ORIEL_OK, heard.status);
  size_t needed = 0;
  std::string text(heard.ids.size() * 64, '\0');
  ASSERT_EQ(ORIEL_OK, oriel_detokenize(loaded.model.get(), heard.ids.data(), heard.ids.size(), 0,
                                       text.data(), text.size(), &needed));
  text.resize(needed);
  if (isText(text)) {
    EXPECT_EQ(text, heard.text);
  }
  EXPECT_GT(heard.result.time_to_first_token_ms, 0.0);
}

}  // namespace
}  // namespace oriel_internal::test::test_session

namespace oriel_internal::test::test_session_refusals {

// Refusals of a session: one line with the reason, and no change. The rules are the session's own, so all tests use the
// CPU.

namespace {

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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
RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

RUNS_ON(kCpu);
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

namespace oriel_internal::test::test_sampling {

// The host's readings of a step: sampling from the best tokens gives the same as from all logits.

namespace {

using Sampling = WatchedSession;

RUNS_ON(kOneDevice | kValidated);
TEST_F(Sampling, reads_the_best_tokens_only_and_draws_what_it_would_from_all_logits) {
  struct Case {
    uint32_t greedy, top_k;
    float repeat_penalty;
  };
  std::vector<std::vector<int32_t>> drawn;
  for (const Case& c :
       {Case{1, 0, 1}, Case{1, 0, 1.3f}, Case{0, 0, 1}, Case{0, 64, 1.3f}, Case{0, 2, 5}}) {
    SCOPED_TRACE(c.top_k);
    ReplyOptions sampling = options();
    sampling.greedy = c.greedy;
    if (c.top_k != 0) {
      sampling.set("top_k", c.top_k);
    }
    sampling.set("repeat_penalty", c.repeat_penalty);
    model_->executor->hidden = false;
    const std::vector<int32_t> ids = draw(sampling);
    EXPECT_EQ(0u, model_->executor->logits_asked);
    model_->executor->hidden = true;
    EXPECT_EQ(draw(sampling), ids);
    EXPECT_EQ(kTokens, model_->executor->logits_asked);
    for (const std::vector<int32_t>& others : drawn) {
      EXPECT_NE(others, ids) << "the options made no difference";
    }
    drawn.push_back(ids);
  }
}

RUNS_ON(kOneDevice);
TEST_F(Sampling, asks_for_all_logits_where_any_token_may_be_drawn) {
  ReplyOptions sampling = options();
  sampling.set("top_k", 0);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
  sampling.set("top_k", 65);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
  sampling.set("top_k", 40);
  sampling.set("repeat_penalty", 0.9f);
  (void)draw(sampling);
  EXPECT_EQ(kTokens, model_->executor->logits_asked);
}

// The executor's best tokens then belong to another step than the session's logits.
RUNS_ON(kOneDevice);
TEST_F(Sampling, goes_on_from_a_snapshot_with_the_logits_that_it_holds) {
  const ReplyOptions sampling = options();
  (void)draw(sampling);
  const std::vector<uint8_t> snapshot = save();
  const std::vector<float> logits = logitsOf(model_->loaded);
  const std::vector<int32_t> ids = goOn(sampling);
  EXPECT_EQ(0u, model_->executor->logits_asked);
  EXPECT_NE(logits, logitsOf(model_->loaded));
  ASSERT_EQ(ORIEL_OK, restoreFrom(model_->session(), snapshot));
  EXPECT_EQ(logits, logitsOf(model_->loaded));
  EXPECT_EQ(ids, goOn(sampling));
  EXPECT_EQ(1u, model_->executor->logits_asked);
}

// All logits are copied to a buffer that uploads and snapshots also use.
RUNS_ON(kOneDevice);
TEST_F(Sampling, logits_are_there_again_after_a_snapshot_went_where_they_lay) {
  (void)draw(options());
  const std::vector<float> logits = logitsOf(model_->loaded);
  const std::vector<uint8_t> snapshot = save();
  EXPECT_EQ(logits, logitsOf(model_->loaded));
}

}  // namespace
}  // namespace oriel_internal::test::test_sampling
