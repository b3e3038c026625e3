// Promises of sessions for models with states: going back by checkpoints, snapshots without them, and forgetting.
// tests/unit/test_checkpoints.cpp covers all histories; here are the kernels' bits.
#include <algorithm>
#include <memory>

#include <gtest/gtest.h>

#include "support/against_float64.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_state_sessions {
namespace {

/// Each rule: alternating with attention, parallel to it and alone; and the golden file of the first.
class StateSessions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const RandomFamily& family : randomFamilies()) {
      if (family.name == GetParam()) {
        file_ = std::make_unique<TemporaryModel>(family.model);
      }
    }
    path_ = file_ != nullptr ? file_->path() : dataFile(GetParam());
    ORIEL_SKIP_WITHOUT(!path_.empty(), GetParam());
  }

  static Options optionsOf(uint32_t checkpoints, uint32_t window = 400) {
    Options options = windowOptions(4, window, 8);
    options.set("checkpoints", checkpoints);
    return options;
  }
  Loaded fresh(uint32_t checkpoints, uint32_t window = 400, bool forgets = false) const {
    const Options options = optionsOf(checkpoints, window);
    Loaded loaded;
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path_.c_str(), &options, &model));
    loaded.model.reset(model);
    SessionOptions session_options;
    session_options.chat_template = "mistral-v1";  // control tokens end replies in any vocabulary
    session_options.set("forget", forgets);
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded.session.reset(session);
    return loaded;
  }
  static std::vector<int32_t> ids(size_t count) { return someIds(count, 250); }
  static oriel_status rewind(const Loaded& loaded, uint64_t position) {
    return goBackTo(loaded.session.get(), position);
  }
  static void turn(const Loaded& loaded, const std::string& text) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
    reply(loaded, 6);
  }
  static void reply(const Loaded& loaded, uint32_t tokens) {
    ReplyOptions options = greedyOptions(tokens);
    options.set("ignore_stop", true);
    options.seed = 1;
    ASSERT_EQ(ORIEL_OK,
              oriel_chat_reply(loaded.session.get(), &options, nullptr, nullptr, nullptr));
  }
  static std::vector<uint64_t> checkpoints(const Loaded& loaded) {
    return describe(loaded)["checkpoints"];
  }
  static std::vector<int32_t> held(const Loaded& loaded, uint64_t first) {
    std::vector<int32_t> tokens(1000);
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(loaded.session.get(), first, tokens.data(),
                                                 tokens.size(), &count));
    tokens.resize(count);
    return tokens;
  }

  std::unique_ptr<TemporaryModel> file_;
  std::string path_;
};

std::vector<int32_t> head(const std::vector<int32_t>& all, size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

RUNS_ON(kCpu);
TEST_P(StateSessions, take_their_checkpoints_bytes_and_no_others) {
  const FullPlan none = planOf(fresh(0));
  const FullPlan three = planOf(fresh(3));
  EXPECT_EQ(2u, none.count("state_slots"));
  EXPECT_EQ(0u, none.count("checkpoints"));
  EXPECT_EQ(5u, three.count("state_slots"));
  EXPECT_EQ(3u, three.count("checkpoints"));
  EXPECT_EQ(5 * none.count("state_bytes"), 2 * three.count("state_bytes"));
  // Memories begin on 256 bytes.
  EXPECT_NEAR(static_cast<double>(three.count("state_bytes") - none.count("state_bytes")),
              static_cast<double>(three.kv_bytes - none.kv_bytes), 64 * 256 + 4096);
  EXPECT_EQ(none.activation_bytes, three.activation_bytes);
  EXPECT_EQ(none.host_bytes, three.host_bytes);
}

RUNS_ON(kCpu);
TEST_P(StateSessions, that_went_back_are_those_that_were_never_further_to_the_bit) {
  const std::vector<int32_t> all = ids(61);
  for (const uint32_t count : {0u, 2u}) {
    const Loaded loaded = fresh(count);
    const Loaded other = fresh(count);
    for (const uint32_t position : {1u, 8u, 30u, 56u, 57u}) {
      SCOPED_TRACE(std::to_string(count) + " checkpoints, back to " + std::to_string(position));
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      ASSERT_EQ(ORIEL_OK, append(loaded, all));
      ASSERT_EQ(ORIEL_OK, rewind(loaded, position));
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(other.session.get()));
      ASSERT_EQ(ORIEL_OK, append(other, head(all, position)));
      for (const Loaded* one : {&loaded, &other}) {
        ASSERT_EQ(ORIEL_OK, append(*one, {5, 6, 7}));
      }
      EXPECT_EQ(logitsOf(other), logitsOf(loaded));
      EXPECT_EQ(greedy(other, 12), greedy(loaded, 12));
      EXPECT_EQ(logitsOf(other), logitsOf(loaded));
    }
  }
}

RUNS_ON(kCpu);
TEST_P(StateSessions, edit_the_last_turn_by_reading_that_turn_alone) {
  const Loaded loaded = fresh(2);
  turn(loaded, "What is the name of the big dog in the house?");
  turn(loaded, "And of the cat?");
  const std::vector<uint64_t> starts = describe(loaded)["turns"];
  ASSERT_EQ(2u, starts.size());
  ASSERT_EQ(2u, checkpoints(loaded).size()) << "where the message and its reply begin";
  ASSERT_EQ(ORIEL_OK, rewind(loaded, checkpoints(loaded)[1]));
  EXPECT_EQ(0u, countOf(loaded, "tokens_read_again"));
  ASSERT_EQ(ORIEL_OK, rewind(loaded, starts[1]));
  EXPECT_EQ(starts[1] - checkpoints(loaded)[0], countOf(loaded, "tokens_read_again"));
  turn(loaded, "Who lives there?");

  const Loaded other = fresh(2);
  turn(other, "What is the name of the big dog in the house?");
  turn(other, "Who lives there?");
  EXPECT_LT(relativeL2(logitsOf(loaded), logitsOf(other)), 1e-3);
}

RUNS_ON(kCpu);
TEST_P(StateSessions, go_on_from_a_snapshot_to_the_bit_with_any_number_of_checkpoints) {
  const auto save = [](const Loaded& loaded) { return savedBytes(loaded.session.get()); };
  const Loaded loaded = fresh(3, 60);
  for (const char* text : {"One.", "Two and three.", "Four and five."}) {
    turn(loaded, text);
  }
  const std::vector<uint8_t> snapshot = save(loaded);
  const Loaded other = fresh(0, 60);
  ASSERT_EQ(ORIEL_OK, restoreFrom(other.session.get(), snapshot));
  EXPECT_EQ(snapshot, save(other));
  for (const Loaded* one : {&loaded, &other}) {
    turn(*one, "Six.");
  }
  EXPECT_EQ(logitsOf(loaded), logitsOf(other));
  EXPECT_EQ(save(loaded), save(other));
}

RUNS_ON(kCpu);
TEST_P(StateSessions, that_forget_are_those_of_the_sinks_and_of_what_is_seen) {
  double distance[2] = {};
  for (const bool forgets : {false, true}) {
    const Loaded loaded = fresh(1, 160, forgets);
    const auto viewNow = [&] {
      oriel_stats view = ORIEL_INIT(oriel_stats);
      EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &view));
      return view;
    };
    // Only until the reply itself evicts anything: its end sees the same as its start.
    oriel_stats view = {};
    uint32_t turns = 0;
    for (uint64_t before = 0; view.first_visible < 40 || view.first_visible != before; ++turns) {
      ASSERT_LT(view.position, 2000u);
      std::string question = "A";
      for (uint32_t i = 0; i < turns % 7; ++i) {
        question += " big";
      }
      ASSERT_EQ(ORIEL_OK, add(loaded, "user", question + " dog?"));
      before = viewNow().first_visible;
      reply(loaded, 3);
      view = viewNow();
    }
    EXPECT_EQ(forgets, countOf(loaded, "tokens_read_again") != 0);
    std::vector<int32_t> seen = head(held(loaded, 0), view.sinks_used);
    const std::vector<int32_t> rest = held(loaded, view.first_visible);
    seen.insert(seen.end(), rest.begin(), rest.end());
    const Loaded other = fresh(0);
    ASSERT_EQ(ORIEL_OK, append(other, seen));
    distance[forgets] = relativeL2(logitsOf(loaded), logitsOf(other));
  }
  EXPECT_LT(distance[1], 5e-3);
  EXPECT_GT(distance[0], 4 * distance[1]) << "a trace of what was evicted";
}

RUNS_ON(kCpu);
TEST_P(StateSessions, forget_whole_turns_or_not_at_all) {
  Loaded loaded = fresh(0);
  loaded.session.reset();
  SessionOptions options;
  options.set("evict", "tokens").set("forget", true);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_create(loaded.model.get(), &options, &session));
}

INSTANTIATE_TEST_SUITE_P(Models, StateSessions,
                         testing::Values("qwen35", "granitehybrid", "falcon-h1", "mamba2",
                                         "models/qwen35.gguf", "models/qwen35moe.gguf",
                                         "models/qwen3next.gguf", "models/nemotron_h.gguf",
                                         "models/nemotron_h_moe-latent.gguf"),
                         [](const testing::TestParamInfo<const char*>& row) {
                           std::string name = row.param;
                           for (char& c : name) {
                             c = c == '-' || c == '/' || c == '.' ? '_' : c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_state_sessions

namespace oriel_internal::test::test_short_convolutions {

// Sessions of models with short convolutions (LFM2), whose layers see the last three tokens regardless of the window:
// going back, cancelling, saving and evicting must preserve these columns.

namespace {

constexpr uint32_t kSinks = 4;

class ShortConvolutions : public testing::Test {
 protected:
  Loaded fresh(const Options& options) const { return load(file_.path(), options); }
  static std::vector<int32_t> ids(size_t count) { return someIds(count, 320); }
  /// The logits of a session that has read only these.
  std::vector<float> logitsAfter(const Options& options, const std::vector<int32_t>& tokens) const {
    const Loaded loaded = fresh(options);
    EXPECT_EQ(ORIEL_OK, append(loaded, tokens));
    return logitsOf(loaded);
  }
  static std::vector<uint8_t> save(const Loaded& loaded) {
    return savedBytes(loaded.session.get());
  }
  static oriel_status restore(const Loaded& loaded, const std::vector<uint8_t>& bytes) {
    return restoreFrom(loaded.session.get(), bytes);
  }

  TemporaryModel file_{smallLfm2()};
};

std::vector<int32_t> part(const std::vector<int32_t>& all, size_t begin, size_t end) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}

// ---- Chunks and bytes ----------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, see_the_same_however_the_text_is_cut) {
  const std::vector<int32_t> all = ids(90);
  const std::vector<float> want = logitsAfter(windowOptions(kSinks, 30, 64), all);
  for (const uint32_t chunk : {1u, 2u, 3u, 7u, 64u}) {
    for (const size_t call : {1u, 2u, 3u, 5u, 64u}) {
      const Loaded loaded = fresh(windowOptions(kSinks, 30, chunk));
      for (size_t at = 0; at < all.size(); at += call) {
        ASSERT_EQ(ORIEL_OK, append(loaded, part(all, at, std::min(all.size(), at + call))));
      }
      EXPECT_LT(relativeL2(logitsOf(loaded), want), 1e-3) << "chunk " << chunk << " call " << call;
    }
  }
}

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, take_no_bytes_for_a_longer_window) {
  const FullPlan narrow = planOf(fresh(windowOptions(kSinks, 100, 16)));
  // Two layers of attention, two heads of 16 in f16, keys and values.
  EXPECT_EQ(2u * 2 * 16 * 2 * 2, narrow.kv_bytes_per_token);
  const FullPlan wide = planOf(fresh(windowOptions(kSinks, 356, 16)));
  EXPECT_EQ(256 * narrow.kv_bytes_per_token, wide.kv_bytes - narrow.kv_bytes);
}

// ---- Going back ----------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, rewinding_gives_back_their_columns_or_is_refused) {
  const std::vector<int32_t> all = ids(60);
  constexpr uint32_t kChunk = 6;
  for (const uint32_t window : {100u, 20u}) {  // before anything is evicted, and after
    const Options options = windowOptions(kSinks, window, kChunk);
    const std::vector<float> want = logitsAfter(options, all);
    for (size_t back = 1; back < all.size(); ++back) {
      const size_t position = all.size() - back;
      const Loaded loaded = fresh(options);
      ASSERT_EQ(ORIEL_OK, append(loaded, all));
      const oriel_status status = goBackTo(loaded.session.get(), position);
      if (back <= kChunk) {
        EXPECT_EQ(ORIEL_OK, status) << back << " tokens back, window " << window;
      }
      if (status == ORIEL_OK) {
        // Other tokens first: their columns must be removed.
        ASSERT_EQ(ORIEL_OK, append(loaded, {7, 8}));
        ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), position));
        ASSERT_EQ(ORIEL_OK, append(loaded, part(all, position, all.size())));
        EXPECT_LT(relativeL2(logitsOf(loaded), want), 1e-3) << back << " tokens back";
      } else {
        EXPECT_EQ(ORIEL_ERROR_CONTEXT, status);
        EXPECT_EQ(all.size(), statsOf(loaded).position);
        EXPECT_EQ(want, logitsOf(loaded)) << "nothing has changed";
      }
    }
  }
}

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, rewinding_within_the_first_tokens_gives_back_the_zeros_before_them) {
  const Options options = windowOptions(kSinks, 20, 8);
  for (const uint64_t position : {1u, 2u, 3u}) {
    const Loaded loaded = fresh(options);
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(5)));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), position));
    ASSERT_EQ(ORIEL_OK, append(loaded, {9, 10, 11}));
    std::vector<int32_t> same = part(ids(5), 0, position);
    same.insert(same.end(), {9, 10, 11});
    EXPECT_LT(relativeL2(logitsOf(loaded), logitsAfter(options, same)), 1e-3) << position;
  }
}

TEST_F(ShortConvolutions, start_from_zeros_after_going_back_to_the_beginning_or_starting_anew) {
  const Options options = windowOptions(kSinks, 20, 8);
  const std::vector<float> want = logitsAfter(options, {5, 6, 7});
  Loaded loaded = fresh(options);
  for (const bool rewinds : {true, false}) {
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(50)));
    ASSERT_EQ(ORIEL_OK, rewinds ? goBackTo(loaded.session.get(), 0)
                                : oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, {5, 6, 7}));
    EXPECT_EQ(want, logitsOf(loaded)) << (rewinds ? "rewound" : "reset");
  }
  loaded.session.reset();
  loaded.session = newSession(loaded.model);
  ASSERT_EQ(ORIEL_OK, append(loaded, {5, 6, 7}));
  EXPECT_EQ(want, logitsOf(loaded)) << "a session in the memory of another";
}

// ---- Cancelling ----------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, a_reply_that_was_cut_short_leaves_what_its_tokens_left) {
  const Options options = windowOptions(kSinks, 24, 8);
  for (const bool greedily : {true, false}) {
    const Loaded loaded = fresh(options);
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(40)));
    struct Reply {
      oriel_session* session;
      std::vector<int32_t> ids;
    } reply = {loaded.session.get(), {}};
    const oriel_token_fn cancel_at_three = [](const oriel_token_event* event, void* user) {
      Reply* const self = static_cast<Reply*>(user);
      self->ids.push_back(event->id);
      if (self->ids.size() == 3) {
        oriel_session_cancel(self->session);
      }
      return 0;
    };
    ReplyOptions endless = greedyOptions(0);
    endless.greedy = greedily ? 1 : 0;
    endless.seed = 1;
    endless.set("ignore_stop", true);
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, oriel_session_generate(loaded.session.get(), &endless,
                                                            cancel_at_three, &reply, nullptr));
    ASSERT_EQ(43u, statsOf(loaded).position);
    std::vector<int32_t> same = ids(40);
    same.insert(same.end(), reply.ids.begin(), reply.ids.begin() + 3);
    same.insert(same.end(), {50, 51});
    ASSERT_EQ(ORIEL_OK, append(loaded, {50, 51}));
    EXPECT_LT(relativeL2(logitsOf(loaded), logitsAfter(options, same)), 1e-3);
  }
}

TEST_F(ShortConvolutions, a_cancelled_evaluation_keeps_the_columns_of_the_chunks_before) {
  const Options options = windowOptions(kSinks, 100, 16);
  const Loaded loaded = fresh(options);
  const std::vector<int32_t> all = ids(60);
  const auto cancel = [](size_t index, const float*, size_t, void* user) {
    if (index == 20) {
      oriel_session_cancel(static_cast<oriel_session*>(user));
    }
    return 0;
  };
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, oriel_session_append(loaded.session.get(), all.data(),
                                                        all.size(), cancel, loaded.session.get()));
  ASSERT_EQ(16u, statsOf(loaded).position);
  ASSERT_EQ(ORIEL_OK, append(loaded, part(all, 16, 60)));
  EXPECT_LT(relativeL2(logitsOf(loaded), logitsAfter(options, all)), 1e-3);
}

// ---- Snapshots -----------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, a_snapshot_goes_on_to_the_bit) {
  struct Case {
    oriel_kv_format format;
    size_t tokens;
  };
  // None, fewer than the columns, before the window wraps, and after.
  for (const Case& c :
       {Case{ORIEL_KV_F16, 1}, Case{ORIEL_KV_F16, 2}, Case{ORIEL_KV_F16, 40},
        Case{ORIEL_KV_F16, 150}, Case{ORIEL_KV_INT8, 150}, Case{ORIEL_KV_INT4, 150}}) {
    SCOPED_TRACE(std::to_string(c.tokens) + " tokens, format " + std::to_string(c.format));
    const Options options = windowOptions(kSinks, 60, 8, c.format, c.format);
    const Loaded loaded = fresh(options);
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(c.tokens)));
    const std::vector<uint8_t> snapshot = save(loaded);
    const std::vector<int32_t> expected = greedy(loaded, 70);
    const std::vector<float> expected_logits = logitsOf(loaded);
    const Loaded other = fresh(options);
    ASSERT_EQ(ORIEL_OK, append(other, someIds(111, 300)));  // earlier contents must not matter
    ASSERT_EQ(ORIEL_OK, restore(other, snapshot));
    EXPECT_EQ(snapshot, save(other));
    EXPECT_EQ(expected, greedy(other, 70));
    EXPECT_EQ(expected_logits, logitsOf(other));
  }
}

TEST_F(ShortConvolutions, a_snapshot_of_an_empty_session_has_zeros_before_it) {
  const Options options = windowOptions(kSinks, 60, 8);
  const Loaded loaded = fresh(options);
  const std::vector<uint8_t> empty = save(loaded);
  ASSERT_EQ(ORIEL_OK, append(loaded, ids(40)));
  ASSERT_EQ(ORIEL_OK, restore(loaded, empty));
  ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3}));
  EXPECT_EQ(logitsAfter(options, {1, 2, 3}), logitsOf(loaded));
}

// As in Snapshot.says_nothing_of_what_was_taken_back: it contains no column of a removed token.
RUNS_ON(kCpu);
TEST_F(ShortConvolutions, a_snapshot_says_nothing_of_what_was_taken_back) {
  const Loaded loaded = fresh(windowOptions(kSinks, 24, 16));
  std::vector<std::vector<uint8_t>> snapshots;
  for (const int32_t id : {20, 30}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(16)));
    ASSERT_EQ(ORIEL_OK, append(loaded, ids(96)));
    ASSERT_EQ(ORIEL_OK, append(loaded, std::vector<int32_t>(5, id)));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 112));
    ASSERT_EQ(ORIEL_OK, append(loaded, {7}));
    snapshots.push_back(save(loaded));
  }
  ASSERT_EQ(snapshots[0].size(), snapshots[1].size());
  size_t differ = 0;
  for (size_t i = 0; i < snapshots[0].size(); ++i) {
    differ += snapshots[0][i] != snapshots[1][i] ? 1 : 0;
  }
  // The penalty's tokens, and the checksum.
  EXPECT_LE(differ, 5 * sizeof(int32_t) + sizeof(uint64_t));
}

RUNS_ON(kCpu);
TEST_F(ShortConvolutions, after_a_snapshot_it_goes_back_as_far_as_before) {
  const Options options = windowOptions(kSinks, 24, 8);
  const std::vector<int32_t> all = ids(100);
  const Loaded loaded = fresh(options);
  ASSERT_EQ(ORIEL_OK, append(loaded, all));
  const std::vector<uint8_t> snapshot = save(loaded);
  const std::vector<float> want = logitsOf(loaded);
  for (uint64_t back = 1; back <= 8; ++back) {
    ASSERT_EQ(ORIEL_OK, restore(loaded, snapshot));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 100 - back)) << back;
    ASSERT_EQ(ORIEL_OK, append(loaded, part(all, 100 - back, 100)));
    EXPECT_LT(relativeL2(logitsOf(loaded), want), 1e-3) << back;
  }
}

// ---- Whole turns ---------------------------------------------------------------------------------

/// The definition: after the sinks a token in the window is visible if its turn is completely in the window, unfinished,
/// or longer than half the window.
uint64_t firstVisible(const std::vector<uint64_t>& starts, uint64_t position, uint64_t window) {
  const uint64_t oldest = position - std::min(position, window);
  uint64_t first = position;
  for (uint64_t t = position; t-- > std::max<uint64_t>(kSinks, oldest);) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), t);
    const uint64_t begin = next == starts.begin() ? 0 : *(next - 1);
    if (begin >= oldest || oldest <= kSinks || next == starts.end() ||
        2 * (*next - begin) > window) {
      first = t;
    }
  }
  return first;
}

void expectTurnsOfTheDefinition(RandomLlama model) {
  constexpr uint32_t kWindow = 100;
  model.chat_template = kChatMlTemplate;
  const TemporaryModel file(model);
  const Loaded loaded = load(file.path(), windowOptions(kSinks, kWindow, 16));
  ASSERT_TRUE(loaded.session);
  Float64Model reference(file.path());
  uint64_t read = 0;
  uint32_t evictions = 0;
  for (int turn = 0; turn < 12; ++turn) {
    const std::string text(static_cast<size_t>(3 + turn * 5 % 11), static_cast<char>('a' + turn));
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
    const uint64_t position = statsOf(loaded).position;
    std::vector<int32_t> tokens(position - read);
    size_t needed = 0;
    ASSERT_EQ(ORIEL_OK, oriel_session_get_tokens(loaded.session.get(), read, tokens.data(),
                                                 tokens.size(), &needed));
    ASSERT_EQ(tokens.size(), needed);
    const std::vector<uint64_t> starts = describe(loaded)["turns"];
    std::vector<double> want;
    for (const int32_t id : tokens) {
      ++read;
      want = reference.step(id, kSinks, read - firstVisible(starts, read, kWindow));
    }
    EXPECT_LT(relativeL2(logitsOf(loaded), want), 2.5e-3) << "turn " << turn;
    oriel_stats view = ORIEL_INIT(oriel_stats);
    ASSERT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &view));
    EXPECT_EQ(position <= kSinks + kWindow ? kSinks : firstVisible(starts, position, kWindow),
              view.first_visible);
    evictions += std::count(starts.begin() + 1, starts.end(), view.first_visible) != 0 ? 1 : 0;
  }
  EXPECT_GT(evictions, 3u) << "no turn was evicted as a whole";
}

TEST(EvictedTurns, leave_attention_what_the_definition_says) {
  expectTurnsOfTheDefinition(RandomLlama());
}

TEST(EvictedTurns, leave_short_convolutions_the_tokens_that_were_read_last) {
  expectTurnsOfTheDefinition(smallLfm2());
}

}  // namespace
}  // namespace oriel_internal::test::test_short_convolutions
