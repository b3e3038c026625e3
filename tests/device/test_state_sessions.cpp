// Promises of sessions for models with states: going back by checkpoints, snapshots without them, and forgetting.
// tests/unit/test_checkpoints.cpp covers all histories; here are the kernels' bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "support/against_float64.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/sessions.h"
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
