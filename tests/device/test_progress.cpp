// How far a call has got with the tokens that it reads.
#include <gtest/gtest.h>

#include "support/sessions.h"

namespace oriel_internal::test::test_progress {
namespace {

using Told = std::vector<std::pair<uint64_t, uint64_t>>;

/// A session that notes what it is told, and says stop at the n-th time.
class Progress : public testing::Test {
 protected:
  void SetUp() override {
    oriel_model* model = nullptr;
    const oriel_options options = cpuOptions(&log_, 300, 16);
    ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
    loaded_.model.reset(model);
    oriel_session_options session_options = {};
    session_options.struct_size = sizeof(session_options);
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

  /// Grows, and ends with all that was read since `begin`. Returns and forgets what was told.
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

TEST_F(Progress, comes_after_every_batch_of_ids) {
  ASSERT_EQ(ORIEL_OK, append(loaded_, someIds(40, 2000)));
  EXPECT_EQ((Told{{16, 40}, {32, 40}, {40, 40}}), expectSound(0));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {1}));
  EXPECT_EQ((Told{{1, 1}}), expectSound(40));
  ASSERT_EQ(ORIEL_OK, append(loaded_, {}));
  EXPECT_TRUE(told_.empty());
}

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

TEST_F(Progress, is_of_messages_and_of_what_opens_a_reply) {
  uint64_t begin = position();
  ASSERT_EQ(ORIEL_OK,
            add(loaded_, "user", "Tell me a story about a little dog, please, and a long one."));
  const Told message = expectSound(begin);
  EXPECT_EQ(position(), message.front().second) << "exactly";
  begin = position();
  const oriel_generate_options few = greedyOptions(5);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(session(), &few, nullptr, nullptr, nullptr));
  const uint64_t opening = told_.back().second;
  EXPECT_LT(0u, opening);
  EXPECT_GE(position() - begin, opening + 1) << "tokens of the reply are none of them";
  EXPECT_EQ(told_.back().first, opening);
}

TEST_F(Progress, of_a_list_of_messages_is_of_all_of_them) {
  const std::string words = "one two three four five six seven eight nine ten eleven twelve ";
  const std::string json = R"([{"role": "user", "content": ")" + words + words +
                           R"("}, {"role": "assistant", "content": ")" + words +
                           R"("}, {"role": "user", "content": ")" + words + words + R"("}])";
  ASSERT_EQ(ORIEL_OK, oriel_chat_add_json(session(), json.data(), json.size()));
  const Told told = expectSound(0);
  EXPECT_GT(told.front().second, position() / 2) << "those to come are estimated";
}

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
  oriel_generation result = {};
  result.struct_size = sizeof(result);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_reply(session(), nullptr, nullptr, nullptr, &result));
  EXPECT_EQ(ORIEL_STOP_CANCELLED, result.stop_reason);
  EXPECT_EQ(0u, result.tokens);
}

// Counting beforehand and telling change nothing.
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

}  // namespace
}  // namespace oriel_internal::test::test_progress
