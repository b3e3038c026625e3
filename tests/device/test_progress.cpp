// Progress of calls that read tokens, and of loads.
#include <gtest/gtest.h>

#include "support/ledger.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_progress {
namespace {

using Told = std::vector<std::pair<uint64_t, uint64_t>>;

/// A session that records its progress calls, and stops at the n-th.
class Progress : public testing::Test {
 protected:
  void SetUp() override {
    oriel_model* model = nullptr;
    const Options options = cpuOptions(&log_, 300, 16);
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
    loaded_.model.reset(model);
    SessionOptions session_options;
    session_options.progress = [](uint64_t done, uint64_t total, void* user) {
      auto* const self = static_cast<Progress*>(user);
      self->told_.emplace_back(done, total);
      return self->told_.size() == self->stop_at_ ? 1 : 0;
    };
    session_options.progress_user = this;
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, &session_options, &session));
    loaded_.session.reset(session);
  }
  oriel_session* session() const { return loaded_.session.get(); }
  uint64_t position() const { return statsOf(loaded_).position; }

  /// Checks that progress grows and ends with everything since `begin`. Returns and clears the record.
  Told expectSound(uint64_t begin) {
    uint64_t before = 0;
    for (const auto& [done, total] : told_) {
      EXPECT_LT(before, done);
      EXPECT_LE(done, total);
      before = done;
    }
    EXPECT_FALSE(told_.empty());
    if (!told_.empty()) {
      EXPECT_EQ(told_.back().first, told_.back().second);
      EXPECT_EQ(position() - begin, told_.back().second);
    }
    Told told;
    told.swap(told_);
    return told;
  }

  CapturedLog log_;
  Loaded loaded_;
  Told told_;
  size_t stop_at_ = 0;
};

RUNS_ON(kCpu);
TEST_F(Progress, comes_after_every_batch_of_ids) {
  ASSERT_EQ(ORIEL_OK, append(loaded_, someIds(40, 2000)));
  EXPECT_EQ((Told{{16, 40}, {32, 40}, {40, 40}}), expectSound(0));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1}));
  EXPECT_EQ((Told{{1, 1}}), expectSound(40));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {}));
  EXPECT_TRUE(told_.empty());
}

RUNS_ON(kCpu);
TEST_F(Progress, knows_the_tokens_of_a_text_however_long) {
  const std::string sentence = "The little dog went to the big house, and it was 12 o'clock. ";
  for (const uint32_t times : {1u, 20u, 300u}) {
    std::string text;
    for (uint32_t i = 0; i < times; ++i) {
      text += sentence;
    }
    const uint64_t begin = position();
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(session(), text.data(), text.size(), 0));
    const Told told = expectSound(begin);
    for (const auto& [done, total] : told) {
      ASSERT_EQ(position() - begin, total) << "from the beginning, at " << done;
    }
    EXPECT_EQ((position() - begin + 15) / 16, told.size());
  }
  EXPECT_LT(2048u, position()) << "more than is encoded at once";
}

RUNS_ON(kCpu);
TEST_F(Progress, is_of_messages_and_of_what_opens_a_reply) {
  uint64_t begin = position();
  ASSERT_EQ(ORIEL_OK,
            add(loaded_, "user", "Tell me a story about a little dog, please, and a long one."));
  const Told message = expectSound(begin);
  EXPECT_EQ(position(), message.front().second) << "exactly";
  begin = position();
  const ReplyOptions few = greedyOptions(5);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(session(), &few, nullptr, nullptr, nullptr));
  const uint64_t opening = told_.back().second;
  EXPECT_LT(0u, opening);
  EXPECT_GE(position() - begin, opening + 1) << "tokens of the reply are none of them";
  EXPECT_EQ(told_.back().first, opening);
}

RUNS_ON(kCpu);
TEST_F(Progress, of_a_list_of_messages_is_of_all_of_them) {
  const std::string words = "one two three four five six seven eight nine ten eleven twelve ";
  const std::string json = R"([{"role": "user", "content": ")" + words + words +
                           R"("}, {"role": "assistant", "content": ")" + words +
                           R"("}, {"role": "user", "content": ")" + words + words + R"("}])";
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), nullptr, json.data(), json.size()));
  const Told told = expectSound(0);
  EXPECT_GT(told.front().second, position() / 2) << "those to come are estimated";
}

RUNS_ON(kCpu);
TEST_F(Progress, that_says_stop_cancels_the_call) {
  stop_at_ = 2;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, append(loaded_, someIds(40, 2000)));
  EXPECT_EQ(32u, position()) << "as a cancel from a second thread";
  EXPECT_EQ(2u, told_.size());
  told_.clear();
  stop_at_ = 3;
  EXPECT_EQ(ORIEL_OK, append(loaded_, someIds(40, 2000))) << "it had nothing more to begin";
  EXPECT_EQ(3u, told_.size());
  EXPECT_EQ(ORIEL_OK, append(loaded_, someIds(4, 2000)));
  EXPECT_EQ("", log_.errors());
}

RUNS_ON(kCpu);
TEST_F(Progress, that_says_stop_takes_a_message_back) {
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1, 2, 3}));
  told_.clear();
  stop_at_ = 1;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            add(loaded_, "user", "Tell me a story about a little dog, please, and a long one."));
  EXPECT_EQ(3u, position());
  told_.clear();
  stop_at_ = 1;
  ASSERT_EQ(ORIEL_OK, add(loaded_, "user", "Hello"));
  told_.clear();
  oriel_generation result = ORIEL_INIT(oriel_generation);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_reply(session(), nullptr, nullptr, nullptr, &result));
  EXPECT_EQ(ORIEL_STOP_CANCELLED, result.stop_reason);
  EXPECT_EQ(0u, result.tokens);
}

// Counting and reporting do not change the results.
RUNS_ON(kCpu);
TEST_F(Progress, leaves_the_same_session_as_without) {
  std::string text;
  for (uint32_t i = 0; i < 200; ++i) {
    text += "A long story about dog number " + std::to_string(i) + ". ";
  }
  const Loaded plain = load(kTrained, cpuOptions(nullptr, 300, 16));
  for (const Loaded* one : {&plain, static_cast<const Loaded*>(&loaded_)}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(one->session.get(), text.data(), text.size(), 0));
  }
  EXPECT_EQ(logitsOf(plain), logitsOf(loaded_));
  EXPECT_EQ(statsOf(plain).position, position());
}

// A load reports its progress from the start, and ends soon after a stop request: counted, not timed.

/// Progress of a load; stops at the `stop_at`-th report.
struct LoadWatch {
  explicit LoadWatch(const Ledger* ledger_of_app) : ledger(ledger_of_app) {}

  static int onProgress(uint64_t done, uint64_t total, void* user) {
    auto* const self = static_cast<LoadWatch*>(user);
    EXPECT_LE(done, total);
    EXPECT_GE(done, self->last) << "it went back";
    EXPECT_GT(total, 0u);
    EXPECT_TRUE(self->last == 0 || total == self->total) << "the total changed";
    self->taken_before_first =
        self->asks == 0 ? self->ledger->live_bytes : self->taken_before_first;
    self->most_at_once = std::max(self->most_at_once, done - self->last);
    self->asks_before_weights += done == 0 ? 1 : 0;
    self->asks_after_weights += done == total ? 1 : 0;
    self->last = done;
    self->total = total;
    return ++self->asks == self->stop_at ? 1 : 0;
  }

  const Ledger* ledger;
  uint64_t stop_at = 0;
  uint64_t asks = 0;
  uint64_t last = 0;
  uint64_t total = 0;
  uint64_t taken_before_first = 0;
  uint64_t most_at_once = 0;
  uint64_t asks_before_weights = 0;
  uint64_t asks_after_weights = 0;
};

oriel_status loadOnce(Options options, const Ledger& ledger, LoadWatch* told) {
  options.allocator = ledger.allocator();
  options.progress = LoadWatch::onProgress;
  options.progress_user = told;
  oriel_model* model = nullptr;
  const oriel_status status = oriel_model_load(kTrained, &options, &model);
  EXPECT_EQ(status == ORIEL_OK, model != nullptr);
  oriel_model_free(model);
  return status;
}

TEST(LoadProgress, begins_before_anything_is_taken_and_covers_every_phase) {
  Ledger ledger;
  LoadWatch told(&ledger);
  Options options = makeOptions();
  options.memory_bytes = 64u << 20;
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
  EXPECT_EQ(0u, told.taken_before_first);
  EXPECT_EQ(told.total, told.last);
  // The header, each pass over the vocabulary, plans, templates, the executor; then pieces that are read and sent.
  EXPECT_GE(told.asks_before_weights, 10u);
  EXPECT_GE(told.asks_after_weights, 1u);
  EXPECT_GE(told.asks, told.total / (256 << 10));
}

// If the app's allocator returns nonzero memory, arenas are zeroed explicitly.
TEST(LoadProgress, goes_on_while_memory_is_zeroed) {
  Options options = makeOptions();
  if (onVulkan()) {
    GTEST_SKIP() << "the driver zeroes";
  }
  Ledger ledger;
  const auto asks = [&](uint32_t window) {
    options.memory_bytes = uint64_t{2} << 30;
    options.window_tokens = window;
    options.set("kv", "f16");
    LoadWatch told(&ledger);
    EXPECT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
    return told.asks_before_weights;
  };
  const uint64_t few = asks(1000);
  const uint64_t peak = ledger.peak_bytes;
  const uint64_t many = asks(60000);
  ASSERT_GT(ledger.peak_bytes, peak + (100u << 20)) << "the larger window is no larger";
  EXPECT_GE(many, few + (ledger.peak_bytes - peak) / (16 << 20) - 1);
}

TEST(LoadProgress, a_load_that_is_stopped_at_any_ask_leaves_nothing_behind) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.memory_bytes = 64u << 20;
  options.set("constraints", true);
  options.system_prompt = "You are kind, and you know a lot about hedgehogs.";
  Ledger ledger;
  LoadWatch all(&ledger);
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &all));
  const bool is_cpu = !onVulkan();
  const uint64_t step = is_cpu ? 1 : std::max<uint64_t>(all.asks / 12, 1);
  for (uint64_t k = 1; k <= all.asks; k += step) {
    LoadWatch told(&ledger);
    told.stop_at = k;
    const oriel_status status = loadOnce(options, ledger, &told);
    if (!is_cpu && told.asks < k) {  // while kernels are compiled, it reports once a millisecond
      EXPECT_EQ(ORIEL_OK, status);
      break;
    }
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, status) << "ask " << k;
    EXPECT_EQ(k, told.asks) << "it went on asking";
    EXPECT_EQ(0u, ledger.live_bytes) << "ask " << k;
  }
  EXPECT_EQ("", log.errors());
}

}  // namespace
}  // namespace oriel_internal::test::test_progress
