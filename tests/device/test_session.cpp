// Promises of a session, through the public API. Tests of the session's own rules always use the CPU; tests of device
// results use the target.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/distances.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_session {
namespace {

// ---- Stopping ------------------------------------------------------------------------------------

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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

RUNS_ON(kEachDevice);
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
