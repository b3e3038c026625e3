// What the host reads of a step, and that it draws the same tokens from the best of them as from all.
#include <gtest/gtest.h>

#include <memory>

#include "api/api.h"
#include "support/api.h"
#include "support/forwarding_executor.h"

namespace oriel::test {
namespace {

/// Counts calls for all logits, and can hide the best tokens.
class WatchingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  const TopTokens* top() const override { return hidden ? &nothing_ : ForwardingExecutor::top(); }
  Status logits(const float** values) override {
    ++logits_asked;
    return ForwardingExecutor::logits(values);
  }

  bool hidden = false;
  uint32_t logits_asked = 0;

 private:
  TopTokens nothing_ = {};
};

class Sampling : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 48;

  void SetUp() override {
    oriel_options options = makeOptions(&log_);
    options.window_tokens = 64;
    options.chunk_tokens = 8;
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf",
                                         &options, &model))
        << log_.errors();
    loaded_.model.reset(model);
    real_ = model->executor;
    executor_ = std::make_unique<WatchingExecutor>(real_);
    model->executor = executor_.get();
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
    loaded_.session.reset(session);
  }
  void TearDown() override {
    loaded_.session.reset();
    if (loaded_.model != nullptr) {
      loaded_.model->executor = real_;
    }
  }

  static oriel_generate_options options() {
    oriel_generate_options options = {};
    options.struct_size = sizeof(options);
    options.max_tokens = kTokens;
    options.ignore_stop = 1;
    options.seed = 3;
    options.temperature = 3.0f;  // so that every token was a choice
    return options;
  }

  std::vector<int32_t> draw(const oriel_generate_options& sampling) {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    const std::vector<int32_t> prompt = {11, 42, 7, 99, 3};
    EXPECT_EQ(ORIEL_OK,
              oriel_session_append(loaded_.session.get(), prompt.data(), prompt.size()));
    return goOn(sampling);
  }

  std::vector<int32_t> goOn(const oriel_generate_options& sampling) {
    std::vector<int32_t> ids;
    executor_->logits_asked = 0;
    EXPECT_EQ(ORIEL_OK,
              oriel_session_generate(loaded_.session.get(), &sampling, keepId, &ids, nullptr))
        << log_.errors();
    return ids;
  }

  CapturedLog log_;
  Loaded loaded_;
  Executor* real_ = nullptr;
  std::unique_ptr<WatchingExecutor> executor_;
};

TEST_F(Sampling, reads_the_best_tokens_only_and_draws_what_it_would_from_all_logits) {
  struct Case {
    uint32_t greedy, top_k;
    float repeat_penalty;
  };
  std::vector<std::vector<int32_t>> drawn;
  for (const Case& c : {Case{1, 0, 1}, Case{1, 0, 1.3f}, Case{0, 0, 1}, Case{0, 64, 1.3f}, Case{0, 2, 5}}) {
    SCOPED_TRACE(c.top_k);
    oriel_generate_options sampling = options();
    sampling.greedy = c.greedy;
    sampling.top_k = c.top_k;
    sampling.repeat_penalty = c.repeat_penalty;
    executor_->hidden = false;
    const std::vector<int32_t> ids = draw(sampling);
    EXPECT_EQ(0u, executor_->logits_asked);
    executor_->hidden = true;
    EXPECT_EQ(draw(sampling), ids);
    EXPECT_EQ(kTokens, executor_->logits_asked);
    for (const std::vector<int32_t>& others : drawn) {
      EXPECT_NE(others, ids) << "the options made no difference";
    }
    drawn.push_back(ids);
  }
}

TEST_F(Sampling, asks_for_all_logits_where_any_token_may_be_drawn) {
  oriel_generate_options sampling = options();
  sampling.top_k = UINT32_MAX;
  (void)draw(sampling);
  EXPECT_EQ(kTokens, executor_->logits_asked);
  sampling.top_k = 65;
  (void)draw(sampling);
  EXPECT_EQ(kTokens, executor_->logits_asked);
  sampling.top_k = 40;
  sampling.repeat_penalty = 0.9f;
  (void)draw(sampling);
  EXPECT_EQ(kTokens, executor_->logits_asked);
}

// The executor's best tokens are then of another step than the session's logits.
TEST_F(Sampling, goes_on_from_a_snapshot_with_the_logits_that_it_holds) {
  const oriel_generate_options sampling = options();
  (void)draw(sampling);
  size_t needed = 0;
  (void)oriel_session_save(loaded_.session.get(), nullptr, 0, &needed);
  std::vector<uint8_t> snapshot(needed);
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded_.session.get(), snapshot.data(), needed, &needed));
  const std::vector<float> logits = logitsOf(loaded_);
  const std::vector<int32_t> ids = goOn(sampling);
  EXPECT_EQ(0u, executor_->logits_asked);
  EXPECT_NE(logits, logitsOf(loaded_));
  ASSERT_EQ(ORIEL_OK, oriel_session_restore(loaded_.session.get(), snapshot.data(), needed));
  EXPECT_EQ(logits, logitsOf(loaded_));
  EXPECT_EQ(ids, goOn(sampling));
  EXPECT_EQ(1u, executor_->logits_asked);
}

// All logits are copied to where uploads and snapshots pass through.
TEST_F(Sampling, logits_are_there_again_after_a_snapshot_went_where_they_lay) {
  (void)draw(options());
  const std::vector<float> logits = logitsOf(loaded_);
  size_t needed = 0;
  (void)oriel_session_save(loaded_.session.get(), nullptr, 0, &needed);
  std::vector<uint8_t> snapshot(needed);
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded_.session.get(), snapshot.data(), needed, &needed));
  EXPECT_EQ(logits, logitsOf(loaded_));
}

}  // namespace
}  // namespace oriel::test
