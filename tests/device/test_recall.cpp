// Recalled turns (Options.recall_bytes), against sessions that never evicted them.
#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/stat.h>
#endif

#include "device/count_mallocs.h"
#include "support/allocators.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/recovery.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_recall {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

constexpr uint32_t kSinks = kRecallSinks;
constexpr uint32_t kWindow = kRecallWindow;
}  // namespace

// In a model with one layer keys and values depend only on the token: the reference session has the recalled tokens as
// additional sinks.
TEST_F(Recall, what_came_back_is_seen_as_if_it_had_been_said_behind_the_sinks) {
  struct Case {
    const char* family;
    RecallKv kv;
    double most;  ///< for low-bit formats: evicted tokens are rounded, sinks never
  };
  const Case cases[] = {{"llama", {ORIEL_KV_F16, ORIEL_KV_F16}, 2e-3},
                        {"qwen3", {ORIEL_KV_F16, ORIEL_KV_F16}, 2e-3},
                        {"mistral3", {ORIEL_KV_F16, ORIEL_KV_F16}, 2e-3},
                        {"llama", {ORIEL_KV_INT8, ORIEL_KV_INT8}, 1e-2},
                        {"llama", {ORIEL_KV_INT8, ORIEL_KV_INT4}, 5e-2}};
  for (const Case& tested : cases) {
    SCOPED_TRACE(std::string(tested.family) + " " + std::to_string(tested.kv.k));
    RandomLlama model;
    model.architecture = tested.family;
    model.n_layers = 1;
    if (std::string(tested.family) == "mistral3") {  // keys are multiplied by a magnitude
      model.yarn_factor = 4;
      model.yarn_original = 128;
    }
    const TemporaryModel file(model);
    const Loaded loaded = told(file.path(), options(tested.kv));
    ASSERT_TRUE(loaded.session);
    const std::vector<int32_t> before = someIds(kWindow, 256);
    ASSERT_EQ(ORIEL_OK, append(loaded, before));
    ASSERT_EQ(ORIEL_OK, recall(loaded, "what was the secret word smakufu?")) << log_.errors();
    const std::vector<int32_t> came = recalled(loaded);
    ASSERT_GE(came.size(), 16u);
    ASSERT_LE(came.size(), 48u);

    Options plain = options(tested.kv);
    plain.set("retrieval", 0).set("retrieval_tokens", 0);
    plain.set("sinks", kSinks + static_cast<uint32_t>(came.size()));
    const Loaded never = load(file.path(), plain);
    ASSERT_EQ(ORIEL_OK, append(never, tokens(loaded, "Once upon a time", 0)));
    ASSERT_EQ(ORIEL_OK, goBackTo(never.session.get(), kSinks));
    ASSERT_EQ(ORIEL_OK, append(never, came));
    ASSERT_EQ(ORIEL_OK, append(never, before));

    const std::vector<int32_t> after = someIds(40, 257);
    const auto got = evaluate(loaded, after);
    const auto want = evaluate(never, after);
    double worst = 0;
    for (size_t t = 0; t < after.size(); ++t) {
      worst = worse(worst, relativeL2(got[t], want[t]));
    }
    EXPECT_LT(worst, tested.most);

    plain.set("sinks", kSinks);
    const Loaded lost = load(file.path(), plain);
    ASSERT_EQ(ORIEL_OK, append(lost, tokens(loaded, "Once upon a time", 0)));
    ASSERT_EQ(ORIEL_OK, goBackTo(lost.session.get(), kSinks));
    ASSERT_EQ(ORIEL_OK, append(lost, before));
    const auto without = evaluate(lost, after);
    EXPECT_GT(relativeL2(without.back(), want.back()), 2 * tested.most) << "it makes no difference";
  }
}

TEST_F(Recall, finds_the_words_that_were_said_and_nothing_where_none_were) {
  const Loaded loaded = told(kRandom, options());
  ASSERT_EQ(ORIEL_OK, recall(loaded, "xylophone"));
  EXPECT_TRUE(recalled(loaded).empty());
  ASSERT_EQ(ORIEL_OK, recall(loaded, "Tell me the SECRET words!"));
  const std::vector<int32_t> ids = recalled(loaded);
  std::string text(1024, '\0');
  size_t needed = 0;
  ASSERT_EQ(ORIEL_OK, oriel_detokenize(loaded.model.get(), ids.data(), ids.size(), 0, text.data(),
                                       text.size(), &needed));
  text.resize(needed);
  EXPECT_NE(std::string::npos, text.find("secret word")) << text;
  EXPECT_EQ(ids.size(), countOf(loaded, "tokens_recalled"));
  EXPECT_GT(countOf(loaded, "tokens_kept"), 200u);
  ASSERT_EQ(ORIEL_OK, recall(loaded, "zebra"));
  EXPECT_EQ(ids, recalled(loaded)) << "what was asked before may go on";
}

TEST_F(Recall, going_back_finds_what_stood_there_before) {
  const Loaded a = told(kRandom, options());
  const Loaded b = told(kRandom, options());
  const uint64_t place = statsOf(a).position;
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  ASSERT_FALSE(recalled(a).empty());
  ASSERT_EQ(ORIEL_OK, append(a, someIds(5, 200)));
  ASSERT_EQ(ORIEL_OK, goBackTo(a.session.get(), place));
  EXPECT_TRUE(recalled(a).empty());
  ASSERT_EQ(ORIEL_OK, append(a, someIds(6, 201)));
  ASSERT_EQ(ORIEL_OK, append(b, someIds(6, 201)));
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
  // Also the first turn, recalled after other text followed it.
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  const std::vector<int32_t> first = recalled(a);
  const uint64_t second_place = statsOf(a).position;
  ASSERT_EQ(ORIEL_OK, append(a, someIds(1, 202)));
  ASSERT_EQ(ORIEL_OK, recall(a, "number 111"));
  ASSERT_NE(first, recalled(a));
  ASSERT_EQ(ORIEL_OK, append(a, someIds(1, 203)));
  ASSERT_EQ(ORIEL_OK, goBackTo(a.session.get(), second_place + 1));
  EXPECT_EQ(first, recalled(a));
  ASSERT_EQ(ORIEL_OK, recall(b, "secret"));
  ASSERT_EQ(ORIEL_OK, append(b, someIds(1, 202)));
  ASSERT_EQ(ORIEL_OK, append(a, someIds(4, 204)));
  ASSERT_EQ(ORIEL_OK, append(b, someIds(4, 204)));
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
}

TEST_F(Recall, a_snapshot_goes_on_to_the_bit) {
  const Loaded a = told(kRandom, options({ORIEL_KV_INT8, ORIEL_KV_INT4}));
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  ASSERT_EQ(ORIEL_OK, append(a, someIds(5, 200)));
  const std::vector<uint8_t> bytes = save(a);
  const Loaded b = load(kRandom, options({ORIEL_KV_INT8, ORIEL_KV_INT4}));
  ASSERT_EQ(ORIEL_OK, restoreFrom(b.session.get(), bytes)) << log_.errors();
  EXPECT_EQ(recalled(a), recalled(b));
  EXPECT_EQ(bytes, save(b));
  EXPECT_EQ(greedy(a, 90), greedy(b, 90));  // past the window once more
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
  // A session without memory for it works without recall.
  Options plain = options({ORIEL_KV_INT8, ORIEL_KV_INT4});
  plain.set("retrieval", 0).set("retrieval_tokens", 0);
  const Loaded c = load(kRandom, plain);
  ASSERT_EQ(ORIEL_OK, restoreFrom(c.session.get(), bytes)) << log_.errors();
  EXPECT_TRUE(recalled(c).empty());
  EXPECT_EQ(statsOf(b).position - 90, statsOf(c).position);
  EXPECT_EQ(8u, greedy(c, 8).size());
  // Text stored from here on is recalled here, too.
  ASSERT_EQ(ORIEL_OK, appendText(b, "a pelican landed. "));
  ASSERT_EQ(ORIEL_OK, appendText(b, filler()));
  ASSERT_EQ(ORIEL_OK, recall(b, "pelican"));
  EXPECT_NE(recalled(a), recalled(b));
}

TEST_F(Recall, a_fork_has_all_of_it) {
  Options two = options();
  two.sessions = 2;
  const Loaded a = told(kRandom, two);
  ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
  ASSERT_EQ(ORIEL_OK, append(a, someIds(3, 200)));
  oriel_session* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_fork(a.session.get(), &made)) << log_.errors();
  Loaded b;
  b.session.reset(made);
  EXPECT_EQ(recalled(a), recalled(b));
  for (const Loaded* loaded : {&a, static_cast<const Loaded*>(&b)}) {
    ASSERT_EQ(ORIEL_OK, append(*loaded, someIds(9, 205)));
    ASSERT_EQ(ORIEL_OK, recall(*loaded, "number 74"));
    ASSERT_EQ(ORIEL_OK, append(*loaded, someIds(4, 206)));
  }
  EXPECT_EQ(recalled(a), recalled(b));
  EXPECT_TRUE(logitsOf(a) == logitsOf(b));
}

TEST_F(Recall, a_message_that_is_read_again_leaves_the_session_that_was_said_with_it_there) {
  Options small = options();
  small.set("retrieval_tokens", 32);
  small.window_tokens = 150;
  small.set("prefill_batch", 64);  // it goes back this far
  const Loaded a = load(kTrained, small);
  const auto talk = [](const Loaded& loaded) {
    for (uint32_t i = 0; i < 12; ++i) {
      EXPECT_EQ(ORIEL_OK,
                add(loaded, "user", "My fish number " + std::to_string(i) + " is green."));
      EXPECT_EQ(ORIEL_OK, add(loaded, "assistant", "I will remember that."));
    }
  };
  talk(a);
  ASSERT_EQ(ORIEL_OK, add(a, "user", "Which fish is number 1?"));
  const uint64_t asked = statsOf(a).position;
  const Heard heard = listen(&oriel_chat_reply, a, greedyOptions(6));
  ASSERT_EQ(ORIEL_OK, heard.status);
  ASSERT_FALSE(recalled(a).empty());
  EXPECT_GT(statsOf(a).position, asked);
  // The text appears once, with its turns; going back to before the question restores the state.
  EXPECT_EQ(13u, statsOf(a).turn_count);
  ASSERT_EQ(ORIEL_OK, oriel_session_go_back(a.session.get(), ORIEL_BACK_BY_TURNS, 1, nullptr, 0))
      << log_.errors();
  EXPECT_TRUE(recalled(a).empty());
  ASSERT_EQ(ORIEL_OK, add(a, "user", "Which fish is number 1?"));
  EXPECT_EQ(heard.ids, listen(&oriel_chat_reply, a, greedyOptions(6)).ids);
}

RUNS_ON(kOneDevice);
TEST_F(Recall, stands_there_again_after_a_lost_device) {
  RandomLlama one_layer;
  one_layer.n_layers = 1;
  const TemporaryModel file(one_layer);
  const Twins twins(file.path(), options());
  ASSERT_TRUE(twins.ok()) << log_.errors();
  const auto recalledBy = [](const SessionPtr& session) {
    return describe(session)["recalled_ids"].get<std::vector<int32_t>>();
  };
  const std::string fact = "Once upon a time the secret word was smakufu, they said. " + filler();
  const std::string question = "secret";
  twins.both([&](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session.get(), fact.data(), fact.size(), 0));
    ASSERT_EQ(ORIEL_OK, oriel_session_retrieve(session.get(), question.data(), question.size()));
    ASSERT_EQ(ORIEL_OK, append(session, someIds(9, 250)));
  });
  ASSERT_FALSE(recalledBy(twins.mine).empty());
  const_cast<LosableModel&>(twins.losing).lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, someIds(3, 250)));
  (void)recoveredOf(twins.mine.get());
  EXPECT_EQ(recalledBy(twins.other), recalledBy(twins.mine));
  // Once the window is full again, only the slots after the sinks hold old tokens.
  twins.both([](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, append(session, someIds(kWindow + 8, 251)));
  });
  EXPECT_LT(relativeL2(logitsOf(twins.mine), logitsOf(twins.other)), 1e-4);
}

TEST_F(Recall, a_reset_forgets_and_files_go_with_their_sessions) {
  {
    const Loaded a = told(kRandom, options());
    ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(a.session.get()));
    EXPECT_TRUE(recalled(a).empty());
    EXPECT_EQ(0u, countOf(a, "tokens_kept"));
    ASSERT_EQ(ORIEL_OK, appendText(a, filler()));
    ASSERT_EQ(ORIEL_OK, recall(a, "secret"));
    EXPECT_TRUE(recalled(a).empty());
  }
  EXPECT_EQ(0u, files());
}

RUNS_ON(kOneDevice);
TEST_F(Recall, planned_bytes_are_allocated_bytes) {
  const Loaded with = load(kRandom, options());
  const FullPlan plan = planOf(with);
  const oriel_stats stats = statsOf(with);
  EXPECT_EQ(48u, plan.count("recall_tokens"));
  EXPECT_EQ(kSinks, plan.sink_tokens);
  EXPECT_EQ(plan.total_bytes, stats.device_bytes + stats.host_bytes);
  EXPECT_LE(plan.count("recall_file_bytes"), 4u << 20);
  EXPECT_EQ(0u, plan.count("recall_file_tokens") % 16);
  Options plain = options();
  plain.set("retrieval", 0).set("retrieval_tokens", 0);
  const Loaded without = load(kRandom, plain);
  const uint64_t more = plan.total_bytes - planOf(without).total_bytes;
  // Besides the slots and the index: ids of the slots, the folder's name, splits of attention.
  EXPECT_GE(more, plan.count("recall_memory_bytes") - 4096);
  EXPECT_LE(more, plan.count("recall_memory_bytes") + 16384);
}

TEST_F(Recall, nothing_is_allocated_while_tokens_leave) {
  if (!canCountMallocs() || onVulkan()) {
    GTEST_SKIP() << "SKIPPED: mallocs are counted on the CPU, without sanitizers";
  }
  const Loaded a = told(kRandom, options());
  (void)greedy(a, 2);
  ReplyOptions many = greedyOptions(200);
  many.set("ignore_stop", true);
  const MallocCount count;
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(a.session.get(), &many, nullptr, nullptr, nullptr));
  EXPECT_EQ(ORIEL_OK, recall(a, "secret"));
  EXPECT_EQ(0u, count.calls());
}

TEST_F(Recall, wrong_wishes_are_refused_in_one_line) {
  oriel_model* model = nullptr;
  Options wrong = options();
  wrong.set("retrieval_folder", "");
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kRandom, &wrong, &model));
  wrong = options();
  wrong.set("retrieval_tokens", 5000);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kRandom, &wrong, &model));
  wrong = options();
  wrong.set("retrieval", 100);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kRandom, &wrong, &model));
  wrong = options();
  wrong.set("retrieval", 0);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(kRandom, &wrong, &model));
  wrong = options();
  wrong.set("prefix_tokens", 8);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, oriel_model_load(kRandom, &wrong, &model));
  EXPECT_EQ(5u, errorLines(log_));
  wrong = options();
  wrong.set("retrieval_folder", "/no/such/folder");
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kRandom, &wrong, &model));
  const ModelPtr owner(model);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_session_create(model, nullptr, &session));
  EXPECT_EQ(6u, errorLines(log_));
  const Loaded plain = load(kRandom, sessionOptions(&log_));
  EXPECT_EQ(ORIEL_ERROR_STATE, recall(plain, "x"));
}

// Models with a state work without recall, and log it.
TEST_F(Recall, is_left_out_where_a_model_cannot) {
  for (const RandomFamily& family : randomFamilies()) {
    const bool states =
        family.model.architecture == "qwen35" || family.model.architecture == "falcon-h1";
    if (states || family.model.architecture == "hunyuan-dense") {
      const TemporaryModel file(family.model);
      const Loaded loaded = load(file.path(), options());
      ASSERT_TRUE(loaded.session) << family.name;
      EXPECT_EQ(0u, planOf(loaded).count("recall_tokens")) << family.name;
      EXPECT_EQ(0u, files());
    }
  }
}

TEST_F(Recall, the_trained_model_knows_again_what_it_was_told_far_behind_its_window) {
  if (onVulkan()) {
    GTEST_SKIP() << "SKIPPED: on software devices this takes long; the tests above have the parts";
  }
  const auto ask = [&](bool keeps) {
    Options asked = options({ORIEL_KV_INT8, ORIEL_KV_INT4});
    asked.window_tokens = 200;
    asked.set("retrieval_tokens", 128);
    if (!keeps) {
      asked.set("retrieval", 0).set("retrieval_tokens", 0);
    }
    const Loaded loaded = load(kTrained, asked);
    EXPECT_EQ(ORIEL_OK, add(loaded, "user", "My password is smakufu, remember it."));
    EXPECT_EQ(ORIEL_OK, add(loaded, "assistant", "I will remember that."));
    for (uint32_t i = 0; i < 60; ++i) {
      const std::string n = std::to_string(i);
      EXPECT_EQ(ORIEL_OK, add(loaded, "user", "What is " + n + " plus 2?"));
      EXPECT_EQ(ORIEL_OK,
                add(loaded, "assistant", n + " plus 2 is " + std::to_string(i + 2) + "."));
    }
    EXPECT_EQ(ORIEL_OK, add(loaded, "user", "What is my password?"));
    return listen(&oriel_chat_reply, loaded, greedyOptions(24)).text;
  };
  EXPECT_NE(std::string::npos, ask(true).find("smakufu"));
  EXPECT_EQ(std::string::npos, ask(false).find("smakufu"));
}

}  // namespace oriel_internal::test::test_recall

namespace oriel_internal::test::test_recall_edges {

// Recall in edge cases: before the window fills, in forks, after resets, without a file, in small steps.

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
