// Several sessions of one model: independent of each other; with a shared prefix; forks and marks.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "oriel/advanced.h"
#include "support/random_families.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_several_sessions {
namespace {

using Model = ModelPtr;
using Owned = SessionPtr;

// On Vulkan, where kernels compile slowly, only a few with different memories.
std::vector<FamilyParam> families() {
  return onVulkan() ? familyParams({"gemma2", "lfm2", "qwen35", "deepseek2", "qwen3moe"})
                    : familyParams();
}

Model loadModel(const std::string& path, const Options& options) {
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << path;
  return Model(model);
}

Owned openSession(const Model& model, uint32_t window = 0) {
  SessionOptions options;
  options.set("session_window", window);
  oriel_session* session = nullptr;
  EXPECT_EQ(ORIEL_OK, oriel_session_create(model.get(), &options, &session));
  return Owned(session);
}

void appendTo(const Owned& session, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr));
}

std::vector<float> rowOf(const Owned& session) {
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(session.get(), &logits, &count));
  return {logits, logits + count};
}

std::vector<int32_t> greedyOf(const Owned& session, uint32_t tokens) {
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  std::vector<int32_t> ids;
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(session.get(), &options, keepId, &ids, nullptr));
  ids.resize(tokens);
  return ids;
}

std::vector<uint8_t> snapshotOf(const Owned& session) { return savedBytes(session.get()); }

class SeveralSessions : public testing::TestWithParam<FamilyParam> {
 protected:
  /// `count` of the model's ids, different for every seed.
  static std::vector<int32_t> someIds(uint32_t count, uint32_t seed) {
    std::vector<int32_t> ids =
        test::someIds(count + seed, static_cast<int32_t>(GetParam()->model.n_vocab));
    ids.erase(ids.begin(), ids.begin() + seed);
    return ids;
  }
  TemporaryModel file_{GetParam()->model};
};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35");
TEST_P(SeveralSessions, each_is_to_the_bit_what_it_is_alone) {
  constexpr uint32_t kSessions = 3;
  Options options = sessionOptions(nullptr, 48, 8);
  options.sessions = kSessions;
  const Model model = loadModel(file_.path(), options);
  ASSERT_TRUE(model);
  Owned sessions[kSessions];
  std::vector<int32_t> said[kSessions];
  for (uint32_t s = 0; s < kSessions; ++s) {
    sessions[s] = openSession(model);
    appendTo(sessions[s], someIds(10 + 7 * s, s));
  }
  for (uint32_t round = 0; round < 4; ++round) {  // past the window
    for (uint32_t s = 0; s < kSessions; ++s) {
      const std::vector<int32_t> more = greedyOf(sessions[s], 9 + s);
      said[s].insert(said[s].end(), more.begin(), more.end());
    }
  }
  std::vector<float> last[kSessions];
  for (uint32_t s = 0; s < kSessions; ++s) {
    last[s] = rowOf(sessions[s]);
  }
  for (uint32_t s = 0; s < kSessions; ++s) {
    sessions[s].reset();
  }
  // Alone in the same model, and in a model of its own.
  Options one = sessionOptions(nullptr, 48, 8);
  for (uint32_t s = 0; s < kSessions; ++s) {
    const Model other = loadModel(file_.path(), one);
    for (const Model* of : {&model, &other}) {
      const Owned alone = openSession(*of);
      appendTo(alone, someIds(10 + 7 * s, s));
      std::vector<int32_t> ids;
      for (uint32_t round = 0; round < 4; ++round) {
        const std::vector<int32_t> more = greedyOf(alone, 9 + s);
        ids.insert(ids.end(), more.begin(), more.end());
      }
      EXPECT_EQ(said[s], ids) << "session " << s;
      EXPECT_EQ(last[s], rowOf(alone)) << "session " << s;
    }
  }
}

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35");
TEST_P(SeveralSessions, a_prefix_is_seen_as_if_each_had_it) {
  constexpr uint32_t kSessions = 3, kPrefix = 21;
  const std::vector<int32_t> prefix = someIds(kPrefix, 9);
  Options options = sessionOptions(nullptr, 40, 8);
  options.sessions = kSessions;
  options.set("prefix_tokens", kPrefix + 3);  // more room than it needs
  const Model model = loadModel(file_.path(), options);
  ASSERT_TRUE(model);
  Owned sessions[kSessions];
  sessions[0] = openSession(model);
  appendTo(sessions[0], prefix);
  oriel_session* second = nullptr;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(model.get(), nullptr, &second))
      << "before the prefix is made";
  ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), sessions[0].get()));
  for (uint32_t s = 1; s < kSessions; ++s) {
    sessions[s] = openSession(model);
  }
  Options one = sessionOptions(nullptr, 40, 8);
  one.set("sinks", kPrefix);
  const Loaded alone = load(file_.path(), one);
  for (uint32_t again = 0; again < 2; ++again) {
    for (uint32_t s = 0; s < kSessions; ++s) {
      appendTo(sessions[s], someIds(5 + 4 * s, s + again));
    }
    for (uint32_t s = 0; s < kSessions; ++s) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(alone.session.get()));
      ASSERT_EQ(ORIEL_OK, append(alone, prefix));
      ASSERT_EQ(ORIEL_OK, append(alone, someIds(5 + 4 * s, s + again)));
      EXPECT_EQ(greedy(alone, 60), greedyOf(sessions[s], 60)) << s;
      EXPECT_EQ(logitsOf(alone), rowOf(sessions[s])) << s;
      ASSERT_EQ(ORIEL_OK, goBackTo(alone.session.get(), statsOf(alone).position - 1));
    }
    for (uint32_t s = 0; s < kSessions; ++s) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(sessions[s].get()));
      oriel_stats stats = ORIEL_STATS_INIT;
      ASSERT_EQ(ORIEL_OK, oriel_session_get_stats(sessions[s].get(), &stats));
      EXPECT_EQ(kPrefix, stats.position);
      EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(sessions[s].get(), kPrefix - 1));
    }
  }
}

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "qwen35");
TEST_P(SeveralSessions, a_fork_and_its_source_go_on_to_the_bit) {
  for (const bool shares : {false, true}) {
    Options options = sessionOptions(nullptr, 48, 8);
    options.sessions = 2;
    options.set("prefix_tokens", shares ? 12 : 0);
    const Model model = loadModel(file_.path(), options);
    ASSERT_TRUE(model);
    for (const uint32_t tokens : {6u, 30u, 120u}) {
      SCOPED_TRACE(tokens);
      Owned source = openSession(model);
      if (shares) {
        appendTo(source, someIds(11, 5));
        ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), source.get()));
      }
      appendTo(source, someIds(tokens, 1));
      oriel_session* made = nullptr;
      ASSERT_EQ(ORIEL_OK, oriel_session_fork(source.get(), &made));
      Owned fork(made);
      oriel_session* third = nullptr;
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_fork(source.get(), &third));
      EXPECT_EQ(snapshotOf(source), snapshotOf(fork));
      EXPECT_EQ(rowOf(source), rowOf(fork));
      const std::vector<int32_t> said = greedyOf(source, 20);
      appendTo(source, someIds(9, 2));  // the fork is unaffected
      EXPECT_EQ(said, greedyOf(fork, 20));
      appendTo(fork, someIds(9, 2));
      EXPECT_EQ(rowOf(source), rowOf(fork));
      if (shares) {
        source.reset();
        fork.reset();
        ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), nullptr));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Device, SeveralSessions, testing::ValuesIn(families()), familyName);

}  // namespace
}  // namespace oriel_internal::test::test_several_sessions
