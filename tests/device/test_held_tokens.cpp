// The ids of a session's held tokens: enough to rebuild the conversation elsewhere.
#include <gtest/gtest.h>

#include "support/sessions.h"

namespace oriel_internal::test::test_held_tokens {
namespace {

oriel_stats viewOf(const Loaded& loaded) {
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &view));
  return view;
}

/// Consecutive ids from `first` on.
std::vector<int32_t> held(const Loaded& loaded, uint64_t first) {
  size_t needed = 0;
  const oriel_status asked =
      oriel_session_get_tokens(loaded.session.get(), first, nullptr, 0, &needed);
  EXPECT_EQ(needed == 0 ? ORIEL_OK : ORIEL_ERROR_BUFFER_TOO_SMALL, asked);
  std::vector<int32_t> ids(needed);
  EXPECT_EQ(ORIEL_OK,
            oriel_session_get_tokens(loaded.session.get(), first, ids.data(), ids.size(), &needed));
  return ids;
}

oriel_status statusOf(const Loaded& loaded, uint64_t first) {
  int32_t ids[512];
  size_t needed = 99;
  const oriel_status status =
      oriel_session_get_tokens(loaded.session.get(), first, ids, 512, &needed);
  EXPECT_EQ(status == ORIEL_OK, needed != 0 || first == statsOf(loaded).position);
  return status;
}

std::vector<int32_t> range(const std::vector<int32_t>& ids, uint64_t begin, uint64_t end) {
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin),
          ids.begin() + static_cast<std::ptrdiff_t>(end)};
}

void expectHeld(const Loaded& loaded, const std::vector<int32_t>& all) {
  const oriel_stats view = viewOf(loaded);
  ASSERT_EQ(all.size(), view.position);
  if (view.first_stored > view.sinks_used) {
    EXPECT_EQ(range(all, 0, view.sinks_used), held(loaded, 0));
    EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(loaded, view.sinks_used));
    EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(loaded, view.first_stored - 1));
  } else {
    EXPECT_EQ(all, held(loaded, 0));
  }
  EXPECT_EQ(range(all, view.first_stored, all.size()), held(loaded, view.first_stored));
  EXPECT_EQ(range(all, all.size() - 1, all.size()), held(loaded, all.size() - 1));
  EXPECT_EQ(ORIEL_OK, statusOf(loaded, all.size()));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(loaded, all.size() + 1));
}

TEST(HeldTokens, are_the_sinks_and_the_ring_as_the_window_slides) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 20, 8));
  std::vector<int32_t> all;
  for (const size_t count : {1u, 2u, 1u, 8u, 7u, 20u, 1u, 30u, 3u}) {
    std::vector<int32_t> more;
    for (size_t i = 0; i < count; ++i) {
      more.push_back(static_cast<int32_t>((all.size() + i) * 7 % 500));
    }
    ASSERT_EQ(ORIEL_OK, append(loaded, more));
    all.insert(all.end(), more.begin(), more.end());
    expectHeld(loaded, all);
    const std::vector<int32_t> said = greedy(loaded, 3);
    all.insert(all.end(), said.begin(), said.end());
    expectHeld(loaded, all);
  }
  // A rewind removes tokens; the next ones take their numbers.
  const uint64_t back = all.size() - 4;
  ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), back));
  all.resize(back);
  expectHeld(loaded, all);
  ASSERT_EQ(ORIEL_OK, append(loaded, {77, 78}));
  all.insert(all.end(), {77, 78});
  expectHeld(loaded, all);
}

TEST(HeldTokens, without_sinks_and_in_an_empty_session) {
  CapturedLog log;
  Options options = cpuOptions(&log, 20, 8);
  options.set("sinks", 0);
  const Loaded loaded = load(kRandom, options);
  EXPECT_EQ(ORIEL_OK, statusOf(loaded, 0));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(loaded, 1));
  EXPECT_EQ(1u, errorLines(log));
  const std::vector<int32_t> all = someIds(100, 500);
  ASSERT_EQ(ORIEL_OK, append(loaded, all));
  EXPECT_EQ(0u, viewOf(loaded).sinks_used);
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, statusOf(loaded, 0));
  const uint64_t first = viewOf(loaded).first_stored;
  EXPECT_EQ(range(all, first, all.size()), held(loaded, first));
}

TEST(HeldTokens, come_back_with_a_snapshot_and_go_with_a_reset) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log, 20, 8));
  const std::vector<int32_t> all = someIds(70, 500);
  ASSERT_EQ(ORIEL_OK, append(loaded, all));
  const std::vector<uint8_t> snapshot = savedBytes(loaded.session.get());
  const Loaded other = load(kRandom, cpuOptions(&log, 20, 8));
  ASSERT_EQ(ORIEL_OK, append(other, someIds(33, 400)));
  ASSERT_EQ(ORIEL_OK, restoreFrom(other.session.get(), snapshot));
  expectHeld(other, all);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.session.get()));
  EXPECT_TRUE(held(other, 0).empty());
}

TEST(HeldTokens, of_a_session_that_only_assumes_them_are_unknown) {
  CapturedLog log;
  Loaded loaded = load(kRandom, cpuOptions(&log, 20, 8));
  loaded.session.reset();
  SessionOptions options;
  options.set("assumed_tokens", 1000);
  loaded.session = newSession(loaded.model, &options);
  ASSERT_EQ(ORIEL_OK, append(loaded, {5, 6}));
  const std::vector<int32_t> ids = held(loaded, 998);
  EXPECT_EQ((std::vector<int32_t>{-1, -1, 5, 6}), ids);
}

// The same tokens in the same window predict the same next token, up to rounding by other chunk lengths.
TEST(HeldTokens, build_the_conversation_again_in_another_session) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, cpuOptions(&log, 200, 8));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "My name is Ada. Tell me a story."));
  ASSERT_EQ(ORIEL_OK, listen(oriel_chat_reply, loaded, greedyOptions(30)).status);
  const std::vector<int32_t> ids = held(loaded, 0);
  EXPECT_EQ(statsOf(loaded).position, ids.size());
  const std::vector<int32_t> expected = greedy(loaded, 20);
  const Loaded other = load(kTrained, cpuOptions(&log, 200, 8));
  ASSERT_EQ(ORIEL_OK, append(other, ids));
  EXPECT_EQ(expected, greedy(other, 20));
}

}  // namespace
}  // namespace oriel_internal::test::test_held_tokens
