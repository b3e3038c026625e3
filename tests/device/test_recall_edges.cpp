// Recall in edge cases: before the window fills, in forks, after resets, without a file, in small steps.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/ledger.h"
#include "support/recall.h"
#include "support/searching_allocator.h"
#include "support/tiers.h"

#if defined(__linux__)
#include <sys/stat.h>
#endif

namespace oriel_internal::test::test_recall_edges {
namespace {

class RecallEdges : public Recall {
 protected:
  Loaded restored(const Options& options, const std::vector<uint8_t>& bytes) {
    Loaded loaded = load(kRandom, options);
    EXPECT_EQ(ORIEL_OK, restoreFrom(loaded.session.get(), bytes)) << log_.errors();
    return loaded;
  }
  /// Disk usage of the session's unnamed file, in bytes.
  uint64_t onDisk() const {
    uint64_t bytes = 0;
#if defined(__linux__)
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const std::string name = std::filesystem::read_symlink(entry.path(), ignored).string();
      struct stat info = {};
      if (name.rfind(dir_, 0) == 0 && ::stat(entry.path().c_str(), &info) == 0) {
        bytes += 512 * static_cast<uint64_t>(info.st_blocks);
      }
    }
#endif
    return bytes;
  }
};

// Recall adds no tokens before the first eviction; also for a snapshot with an unknown start.
RUNS_ON(kCpu);
TEST_F(RecallEdges, nothing_has_come_back_in_front_of_the_window) {
  const Loaded told_all = told(kRandom, options());
  ASSERT_EQ(ORIEL_OK, recall(told_all, "secret"));
  ASSERT_EQ(ORIEL_OK, append(told_all, someIds(5, 200)));
  const std::vector<uint8_t> bytes = save(told_all);
  for (const uint64_t place : {uint64_t{kRecallSinks}, uint64_t{1}, uint64_t{0}}) {
    SCOPED_TRACE(place);
    const Loaded a = restored(options(), bytes);
    const Loaded b = load(kRandom, options());
    ASSERT_FALSE(recalled(a).empty());
    ASSERT_EQ(ORIEL_OK, goBackTo(a.session.get(), place)) << log_.errors();
    EXPECT_TRUE(recalled(a).empty());
    ASSERT_EQ(ORIEL_OK, appendText(b, "Once upon a time the secret word was smakufu"));
    ASSERT_EQ(ORIEL_OK, goBackTo(b.session.get(), place));
    ASSERT_EQ(ORIEL_OK, append(a, someIds(12, 208)));
    ASSERT_EQ(ORIEL_OK, append(b, someIds(12, 208)));
    EXPECT_TRUE(logitsOf(a) == logitsOf(b));
  }
}

RUNS_ON(kCpu);
TEST_F(RecallEdges, without_its_file_a_session_goes_on) {
  const Loaded saved = told(kRandom, options());
  ASSERT_EQ(ORIEL_OK, recall(saved, "secret"));
  ASSERT_EQ(ORIEL_OK, append(saved, someIds(5, 200)));
  const std::vector<uint8_t> bytes = save(saved);
  const Loaded a = told(kRandom, options());
  std::filesystem::remove_all(folder_);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(a.session.get())) << log_.errors();
  EXPECT_EQ(0u, errorLines(log_)) << log_.errors();
  EXPECT_TRUE(warned("are kept no longer"));
  EXPECT_EQ(0u, statsOf(a).position);
  ASSERT_EQ(ORIEL_OK, appendText(a, filler()));
  ASSERT_EQ(ORIEL_OK, recall(a, "number 37"));
  EXPECT_TRUE(recalled(a).empty());
  ASSERT_EQ(ORIEL_OK, restoreFrom(a.session.get(), bytes));
  EXPECT_EQ(recalled(saved), recalled(a));
  ASSERT_EQ(ORIEL_OK, goBackTo(a.session.get(), 0));
  EXPECT_TRUE(recalled(a).empty());
}

RUNS_ON(kCpu);
TEST_F(RecallEdges, a_reset_leaves_no_token_in_memory) {
  SearchingAllocator memory;
  Options searched = options();
  searched.allocator = memory.allocator();
  const Loaded a = told(kRandom, searched);
  std::vector<int32_t> ids = tokens(a, "There went another day with nothing", 0);
  ASSERT_LT(5u, ids.size());
  ids.erase(ids.begin());
  ids.resize(4);
  memory.lookFor(ids);
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  EXPECT_LT(0u, memory.found_in_live());
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(a.session.get()));
  EXPECT_EQ(0u, memory.found_in_live());
}

// For any size of the file.
RUNS_ON(kCpu);
TEST_F(RecallEdges, a_fork_copies_what_is_kept_and_a_vector_keeps_nothing) {
#if !defined(__linux__)
  GTEST_SKIP() << "SKIPPED: where files without a name are found is known of Linux alone";
#endif
  Options two = options();
  two.sessions = 2;
  two.set("retrieval", 64u << 20);
  const Loaded a = told(kRandom, two);
  const uint64_t bytes = onDisk();
  ASSERT_LT(0u, bytes);
  ASSERT_GT(8u << 20, bytes);
  {
    oriel_session* made = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_fork(a.session.get(), &made)) << log_.errors();
    Loaded fork;
    fork.session.reset(made);
    EXPECT_GE(2 * bytes + 4096, onDisk());
    ASSERT_EQ(ORIEL_OK, recall(fork, "secret"));
    EXPECT_FALSE(recalled(fork).empty());
  }
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(a.session.get()));
  std::vector<float> values(4096);
  size_t needed = 0;
  const std::string text = "There went another day with nothing new, and one more of those.";
  ASSERT_EQ(ORIEL_OK, oriel_embed(a.session.get(), ORIEL_POOLING_AUTO, 0, text.data(), text.size(),
                                  values.data(), values.size(), &needed, nullptr));
  EXPECT_EQ(0u, onDisk());
}

// If the opening of a reply has replaced tokens that its first tokens see, it is not read again: recalled tokens are
// visible from the end of the opening.
RUNS_ON(kCpu);
TEST_F(RecallEdges, an_opening_that_cannot_be_read_again_is_not) {
  Options small = options();
  small.window_tokens = 64;
  small.set("prefill_batch", 1);
  Options plain = small;
  plain.set("retrieval", 0).set("retrieval_tokens", 0);
  const auto talk = [](const Loaded& loaded) {
    for (uint32_t i = 0; i < 12; ++i) {
      EXPECT_EQ(ORIEL_OK,
                add(loaded, "user", "My fish number " + std::to_string(i) + " is green."));
      EXPECT_EQ(ORIEL_OK, add(loaded, "assistant", "I will remember that."));
    }
    EXPECT_EQ(ORIEL_OK, add(loaded, "user", "Which fish is number 1?"));
  };
  const Loaded a = load(kTrained, small);
  const Loaded b = load(kTrained, plain);
  talk(a);
  talk(b);
  const Heard first = listen(&oriel_chat_reply, a, greedyOptions(1));
  ASSERT_EQ(ORIEL_OK, first.status) << log_.errors();
  EXPECT_FALSE(recalled(a).empty());
  EXPECT_EQ(first.ids, listen(&oriel_chat_reply, b, greedyOptions(1)).ids);
}

// A message that is read a second time is stored in its second form.
RUNS_ON(kCpu);
TEST_F(RecallEdges, what_was_read_again_is_what_comes_back) {
  Options two = options();
  two.sessions = 2;
  two.window_tokens = 96;
  two.set("prefill_batch", 64);
  two.set("retrieval_tokens", 128);
  const Loaded a = load(kTrained, two);
  const auto say = [&a](const std::string& text) {
    EXPECT_EQ(ORIEL_OK, add(a, "user", text));
    EXPECT_EQ(ORIEL_OK, listen(&oriel_chat_reply, a, greedyOptions(4)).status);
  };
  say("My dog is called Smakufu.");
  for (uint32_t i = 0; i < 30; ++i) {
    say("There went another day number " + std::to_string(i * 37) + " with nothing new.");
  }
  Loaded b;
  { b.session = forkOf(a.session); }
  const std::string question =
      "Now I would like to know something about violet elephants and purple umbrellas, and above "
      "all this: what is my dog called?";
  ASSERT_EQ(ORIEL_OK, recall(b, question));  // so that it reads the message once
  ASSERT_FALSE(recalled(b).empty());
  for (const Loaded* loaded : {&a, static_cast<const Loaded*>(&b)}) {
    ASSERT_EQ(ORIEL_OK, add(*loaded, "user", question));
    ASSERT_EQ(ORIEL_OK, listen(&oriel_chat_reply, *loaded, greedyOptions(1)).status);
  }
  ASSERT_EQ(recalled(b), recalled(a));
  ASSERT_TRUE(logitsOf(a) == logitsOf(b));
  for (const Loaded* loaded : {&a, static_cast<const Loaded*>(&b)}) {
    ASSERT_EQ(ORIEL_OK, appendText(*loaded, filler()));
    ASSERT_EQ(ORIEL_OK, recall(*loaded, "violet elephants purple umbrellas"));
    ASSERT_EQ(ORIEL_OK, append(*loaded, someIds(4, 206)));
  }
  ASSERT_EQ(recalled(b), recalled(a));
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
}

// Its words do not count, either, if another message follows in the same turn.
RUNS_ON(kCpu);
TEST_F(RecallEdges, a_message_that_is_refused_asks_for_nothing) {
  Ledger ledger;
  Options counted = options();
  counted.allocator = ledger.allocator();
  counted.sessions = 2;
  const Loaded a = load(kTrained, counted);
  EXPECT_EQ(ORIEL_OK, add(a, "user", "My dog is called Smakufu."));
  EXPECT_EQ(ORIEL_OK, listen(&oriel_chat_reply, a, greedyOptions(4)).status);
  EXPECT_EQ(ORIEL_OK, appendText(a, filler()));
  Loaded b;
  b.session = forkOf(a.session);
  for (const Loaded* loaded : {&a, static_cast<const Loaded*>(&b)}) {
    ASSERT_EQ(ORIEL_OK, add(*loaded, "user", "Please tell me a story."));
    if (loaded == &a) {
      ledger.refuse_all = true;
      EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY,
                add(a, "user", "Is my dog Smakufu? " + std::string(1500, 'a')));
      ledger.refuse_all = false;
    }
    ASSERT_EQ(ORIEL_OK, listen(&oriel_chat_reply, *loaded, greedyOptions(1)).status);
  }
  EXPECT_EQ(recalled(b), recalled(a));
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
}

RUNS_ON(kCpu);
TEST_F(RecallEdges, a_window_that_is_too_short_is_said_and_takes_no_memory) {
  Options tiny = options();
  tiny.window_tokens = 31;
  const Loaded loaded = load(kRandom, tiny);
  ASSERT_TRUE(loaded.session) << log_.errors();
  EXPECT_EQ(0u, planOf(loaded).count("recall_tokens"));
  EXPECT_TRUE(warned("give it at least 32"));
  EXPECT_EQ(0u, files());
}

// Recall slots leave a chosen window at least the smallest size that turns can.
RUNS_ON(kCpu);
TEST_F(RecallEdges, more_than_the_context_has_room_for_is_said_and_some_comes_back) {
  Options open = options();
  open.window_tokens = 0;
  open.set("retrieval_tokens", 0);
  const uint32_t context = planOf(load(kRandom, open)).context_train_tokens;
  ASSERT_LT(100u, context);
  open.set("retrieval_tokens", context - kRecallSinks - 20);
  const Loaded a = told(kRandom, open);
  EXPECT_TRUE(warned("leave no window in a context of"));
  EXPECT_EQ(context - kRecallSinks - 32, planOf(a).count("recall_tokens"));
  EXPECT_EQ(32u, planOf(a).window_tokens);
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  EXPECT_FALSE(recalled(a).empty());
  open.set("sinks", context - 40);
  EXPECT_EQ(0u, planOf(load(kRandom, open)).count("recall_tokens"));
  EXPECT_TRUE(warned("is too small"));
}

}  // namespace
}  // namespace oriel_internal::test::test_recall_edges
