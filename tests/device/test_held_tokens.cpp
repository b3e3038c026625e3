// The ids of a session's held tokens: enough to rebuild the conversation elsewhere.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/recovery.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_held_tokens {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

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

RUNS_ON(kOneDevice);
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

namespace oriel_internal::test::test_going_back {

// Sessions that went back and continued, beyond the tests of rewinds: held tokens count from there, and removed text
// leaves no trace.

namespace {

class GoingBack : public ScratchFolder {
 protected:
  Options options(uint32_t window = 128, uint32_t chunk = 32) {
    Options options = recoveryOptions(&log_, window, chunk);
    options.sessions = 2;
    return options;
  }
  /// With recall.
  Options recalling(uint32_t window = 128, uint32_t chunk = 32) {
    Options recalling = options(window, chunk);
    recalling.set("retrieval", 4u << 20);
    recalling.set("retrieval_folder", dir_);
    return recalling;
  }
  SessionPtr open(const Options& options, const SessionOptions* how = nullptr) {
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model)) << log_.errors();
    model_.reset(model);
    return newSession(model_, how);
  }
  /// A name, then turns that evict it.
  static void tellFarBack(const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, say(session, "My dog is called Biscuit."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 8).status);
    for (uint32_t i = 0; i < 16; ++i) {
      ASSERT_EQ(ORIEL_OK, say(session, "Count up to " + std::to_string(i * 7 + 11) + " please."));
      ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
    }
  }
  static oriel_stats statsOf(const SessionPtr& session) {
    oriel_stats stats = ORIEL_STATS_INIT;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(session.get(), &stats));
    return stats;
  }
  std::vector<int32_t> tokensFrom(const SessionPtr& session, uint64_t first) const {
    std::vector<int32_t> ids(4096);
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK,
              oriel_session_get_tokens(session.get(), first, ids.data(), ids.size(), &count));
    ids.resize(count);
    return ids;
  }

  CapturedLog log_;
  const std::string dir_ = path("");
  ModelPtr model_;
};

TEST_F(GoingBack, behind_the_sinks_what_was_held_before_counts_no_more) {
  const uint8_t shares[] = {64, 128, 128, 64, 64, 0};  // windows by layer include the sinks
  for (const bool by_layer : {false, true}) {
    SCOPED_TRACE(by_layer);
    Options some = options();
    if (by_layer) {
      some.set("window_shares", listText(shares));
    }
    const SessionPtr session = open(some);
    ASSERT_EQ(ORIEL_OK, append(session, someIds(2000, 400)));
    ASSERT_EQ(ORIEL_OK, goBackTo(session.get(), 4));
    const std::vector<int32_t> more = someIds(40, 300);
    ASSERT_EQ(ORIEL_OK, append(session, more));
    const std::vector<int32_t> held = tokensFrom(session, 10);
    EXPECT_EQ(std::vector<int32_t>(more.begin() + 6, more.end()), held);
    const SessionPtr fork = forkOf(session);
    ASSERT_EQ(ORIEL_OK, append(session, {7}));
    ASSERT_EQ(ORIEL_OK, append(fork, {7}));
    EXPECT_EQ(logitsOf(session), logitsOf(fork));
    EXPECT_EQ(ORIEL_OK, goBackTo(session.get(), 30)) << log_.errors();
  }
}

// A snapshot of another window lacks tokens before some position. The next one may have them.
TEST_F(GoingBack, a_snapshot_is_held_as_it_says_whatever_was_there) {
  const auto savedBy = [&](uint32_t window, uint32_t tokens) {
    const SessionPtr session = open(options(window, 16));
    EXPECT_EQ(ORIEL_OK, append(session, someIds(tokens, 300)));
    return savedBytes(session.get());
  };
  const std::vector<uint8_t> far = savedBy(40, 300);
  const std::vector<uint8_t> near = savedBy(100, 50);
  const SessionPtr session = open(options(100, 16));
  const SessionPtr fresh = newSession(model_);
  for (const auto& bytes : {far, near}) {
    ASSERT_EQ(ORIEL_OK, restoreFrom(session.get(), bytes));
  }
  ASSERT_EQ(ORIEL_OK, restoreFrom(fresh.get(), near));
  EXPECT_EQ(savedBytes(fresh.get()), savedBytes(session.get()));
  EXPECT_EQ(tokensFrom(fresh, 0), tokensFrom(session, 0));
}

TEST_F(GoingBack, recall_keeps_what_is_said_behind_the_sinks) {
  const SessionPtr session = open(recalling());
  ASSERT_EQ(ORIEL_OK, append(session, someIds(1000, 400)));
  ASSERT_EQ(ORIEL_OK, goBackTo(session.get(), 4));
  ASSERT_EQ(ORIEL_OK, append(session, someIds(400, 300)));
  EXPECT_LE(350u, countOf(session, "tokens_kept"));
}

TEST_F(GoingBack, a_reply_that_was_taken_back_is_no_place_to_be_inside_of) {
  const SessionPtr session = open(options(512));
  ASSERT_EQ(ORIEL_OK, say(session, "My name is Ann."));
  ReplyOptions long_one = greedyOptions(60);
  long_one.set("ignore_stop", true);
  ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, long_one).status);
  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(session.get(), ORIEL_BACK_BY_TURNS, 1, nullptr, 0));
  ASSERT_EQ(ORIEL_OK, say(session, "My name is Bob, and I live in the city of Rome, by the sea."));
  ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "here"));
  ASSERT_EQ(ORIEL_OK, say(session, "What is my name?"));
  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(session.get(), ORIEL_BACK_TO_MARK, 0, "here", 0));
  EXPECT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 5).status) << log_.errors();
}

TEST_F(GoingBack, a_message_that_was_cancelled_changes_nothing_of_the_next) {
  bool stops = false;
  SessionOptions how;
  how.progress = [](uint64_t, uint64_t, void* user) { return *static_cast<bool*>(user) ? 1 : 0; };
  how.progress_user = &stops;
  const SessionPtr session = open(options(512), &how);
  std::string text = "the cat of Rome";
  for (uint32_t i = 0; i < 5; ++i) {
    text += " and " + text;
  }
  std::vector<int32_t> next[2];
  for (const bool cancels : {false, true}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
    ASSERT_EQ(ORIEL_OK, say(session, "My name is Ann."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 10).status);
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session.get(), " so on", 6, 0));
    const uint64_t position = positionOf(session);
    stops = cancels;
    if (cancels) {
      EXPECT_EQ(ORIEL_ERROR_CANCELLED, say(session, text));
      EXPECT_EQ(position, positionOf(session));
    }
    stops = false;
    ASSERT_EQ(ORIEL_OK, say(session, "Hi"));
    next[cancels ? 1 : 0] = tokensFrom(session, position);
  }
  EXPECT_EQ(next[0], next[1]);
}

// The opening is read, and read again with the recalled turns.
TEST_F(GoingBack, a_reply_that_was_cancelled_while_something_came_back_leaves_no_opening) {
  struct Stop {
    uint32_t in = 0;  // counts calls; 0: never
  } stop;
  SessionOptions how;
  how.progress = [](uint64_t, uint64_t, void* user) {
    uint32_t& in = static_cast<Stop*>(user)->in;
    return in != 0 && --in == 0 ? 1 : 0;
  };
  how.progress_user = &stop;
  const SessionPtr session = open(recalling(), &how);
  tellFarBack(session);
  ASSERT_EQ(ORIEL_OK, say(session, "What is the name of my dog?"));
  const SessionPtr kept = forkOf(session);
  const std::string wanted = speak(kept, oriel_chat_reply, 12).text;
  const uint64_t position = positionOf(session);
  for (uint32_t calls = 1; calls <= 2; ++calls) {
    SCOPED_TRACE(calls);
    stop.in = calls;
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, speak(session, oriel_chat_reply, 12).status);
    EXPECT_EQ(position, positionOf(session));
  }
  stop.in = 0;
  EXPECT_EQ(wanted, speak(session, oriel_chat_reply, 12).text);
}

TEST_F(GoingBack, what_the_recall_files_ring_has_written_over_is_not_found) {
  Options few = recalling(128, 64);
  few.set("retrieval", 512u << 10);
  few.set("kv", "f16");
  const SessionPtr session = open(few);
  const FullPlan plan = planOf(model_.get());
  std::vector<std::string> words;
  std::vector<uint64_t> places;
  const auto letter = [](size_t n) { return static_cast<char>('a' + n % 26); };
  while (positionOf(session) < 3 * plan.count("recall_file_tokens")) {
    const size_t n = words.size();
    words.push_back(std::string("zebra") + letter(n / 26) + letter(n));
    places.push_back(positionOf(session));
    const std::string text = " " + words.back() + " is a word, and so on.";
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session.get(), text.data(), text.size(), 0));
  }
  const uint64_t end = positionOf(session);
  ASSERT_EQ(ORIEL_OK, goBackTo(session.get(), end - 60));
  const std::vector<int32_t> all = tokensFrom(session, end - 120);
  for (size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(ORIEL_OK, oriel_session_retrieve(session.get(), words[i].data(), words[i].size()));
    std::vector<char> text(1 << 14);
    const std::vector<int32_t> ids = describe(session)["recalled_ids"];
    if (places[i] >= end - 60) {
      continue;  // it was taken back
    }
    size_t needed = 0;
    ASSERT_EQ(ORIEL_OK, oriel_detokenize(model_.get(), ids.data(), ids.size(), 0, text.data(),
                                         text.size(), &needed));
    // Recalled text was said before that position, not after it.
    for (size_t k = 0; k < words.size(); ++k) {
      EXPECT_TRUE(places[k] < end - 60 ||
                  std::string(text.data()).find(words[k]) == std::string::npos)
          << words[i] << " brings " << words[k];
    }
  }
}

TEST_F(GoingBack, a_fork_without_sinks_has_what_came_back) {
  Options none = recalling();
  none.set("sinks", 0);
  const SessionPtr session = open(none);
  tellFarBack(session);
  ASSERT_EQ(ORIEL_OK, say(session, "What is the name of my dog?"));
  ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 4).status);
  ASSERT_LT(0u, countOf(session, "tokens_recalled"));
  const SessionPtr fork = forkOf(session);
  ASSERT_EQ(ORIEL_OK, append(session, {7}));
  ASSERT_EQ(ORIEL_OK, append(fork, {7}));
  EXPECT_EQ(logitsOf(session), logitsOf(fork));
}

TEST_F(GoingBack, what_came_back_with_a_snapshot_is_gone_at_the_beginning) {
  std::vector<uint8_t> bytes(1 << 22);
  size_t needed = 0;
  uint32_t slots = 0;
  {
    const SessionPtr session = open(recalling());
    tellFarBack(session);
    ASSERT_EQ(ORIEL_OK, say(session, "What is the name of my dog?"));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 4).status);
    ASSERT_EQ(ORIEL_OK, oriel_snapshot_save(session.get(), bytes.data(), bytes.size(), &needed));
    const FullPlan plan = planOf(model_.get());
    slots = plan.sink_tokens + static_cast<uint32_t>(plan.count("recall_tokens"));
  }
  Options plain = options();
  plain.set("sinks", slots);
  const SessionPtr session = open(plain);
  const std::vector<int32_t> ids = someIds(30, 300);
  ASSERT_EQ(ORIEL_OK, append(session, ids));
  const std::vector<float> fresh = logitsOf(session);
  ASSERT_EQ(ORIEL_OK, oriel_snapshot_restore(session.get(), bytes.data(), needed, 0, nullptr))
      << log_.errors();
  ASSERT_LT(0u, countOf(session, "tokens_recalled"));
  ASSERT_EQ(ORIEL_OK, goBackTo(session.get(), 0));
  EXPECT_EQ(0u, countOf(session, "tokens_recalled"));
  ASSERT_EQ(ORIEL_OK, append(session, ids));
  EXPECT_EQ(fresh, logitsOf(session));
}

}  // namespace
}  // namespace oriel_internal::test::test_going_back
