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

  bool runsAhead() const override { return ahead; }
  Status runAhead(bool* more) override {
    const Status status = ForwardingExecutor::runAhead(more);
    begun_ahead += *more ? 1 : 0;
    return status;
  }
  Status dropAhead() override {
    ++dropped;
    return ForwardingExecutor::dropAhead();
  }

  bool hidden = false;
  bool ahead = false;  ///< whether the device is a GPU or not
  uint32_t logits_asked = 0;
  uint32_t begun_ahead = 0;
  uint32_t dropped = 0;

 private:
  TopTokens nothing_ = {};
};

// Random weights: which token comes next is open, whatever the bundled model has learned.
class Sampling : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 48;

  void SetUp() override {
    load(64);
  }
  void TearDown() override { unload(); }

  void load(uint32_t window, const char* path = ORIEL_TEST_DATA "/models/llama-q8_0.gguf") {
    oriel_options options = makeOptions(&log_);
    options.window_tokens = window;
    options.chunk_tokens = 8;
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(path, &options, &model))
        << log_.errors();
    loaded_.model.reset(model);
    real_ = model->executor;
    executor_ = std::make_unique<WatchingExecutor>(real_);
    model->executor = executor_.get();
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
    loaded_.session.reset(session);
  }
  void unload() {
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

  std::vector<uint8_t> save() {
    size_t needed = 0;
    (void)oriel_session_save(loaded_.session.get(), nullptr, 0, &needed);
    std::vector<uint8_t> snapshot(needed);
    EXPECT_EQ(ORIEL_OK,
              oriel_session_save(loaded_.session.get(), snapshot.data(), needed, &needed));
    return snapshot;
  }

  std::vector<int32_t> goOn(const oriel_generate_options& sampling) {
    std::vector<int32_t> ids;
    executor_->logits_asked = executor_->begun_ahead = executor_->dropped = 0;
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
  const std::vector<uint8_t> snapshot = save();
  const std::vector<float> logits = logitsOf(loaded_);
  const std::vector<int32_t> ids = goOn(sampling);
  EXPECT_EQ(0u, executor_->logits_asked);
  EXPECT_NE(logits, logitsOf(loaded_));
  ASSERT_EQ(ORIEL_OK, oriel_session_restore(loaded_.session.get(), snapshot.data(), snapshot.size()));
  EXPECT_EQ(logits, logitsOf(loaded_));
  EXPECT_EQ(ids, goOn(sampling));
  EXPECT_EQ(1u, executor_->logits_asked);
}

// All logits are copied to where uploads and snapshots pass through.
TEST_F(Sampling, logits_are_there_again_after_a_snapshot_went_where_they_lay) {
  (void)draw(options());
  const std::vector<float> logits = logitsOf(loaded_);
  const std::vector<uint8_t> snapshot = save();
  EXPECT_EQ(logits, logitsOf(loaded_));
}

// ---- Ahead of the host ----

class RunningAhead : public Sampling {
 protected:
  void SetUp() override {
    Sampling::SetUp();
    if (targetDevice() != ORIEL_DEVICE_VULKAN) {
      GTEST_SKIP() << "the CPU executor does not run ahead";
    }
  }
  static oriel_generate_options greedyOptions() {
    oriel_generate_options options = Sampling::options();
    options.greedy = 1;
    return options;
  }
  /// What a device is given ahead follows from how long its tokens take.
  static void skipIfTooSlow(uint32_t times) {
    if (times == 0) {
      GTEST_SKIP() << "no token was short enough to go ahead of: a busy machine";
    }
  }
  uint64_t position() { return statsOf(loaded_).position; }

  /// The same twice, once ahead of the host; returns what it gave and left behind both times.
  template <typename Work>
  void expectTheSame(const Work& work) {
    executor_->ahead = false;
    executor_->begun_ahead = 0;
    const std::vector<int32_t> ids = work();
    EXPECT_EQ(0u, executor_->begun_ahead);
    const std::vector<float> logits = logitsOf(loaded_);
    const std::vector<uint8_t> snapshot = save();
    executor_->ahead = true;
    executor_->begun_ahead = executor_->dropped = 0;
    EXPECT_EQ(ids, work());
    EXPECT_EQ(logits, logitsOf(loaded_));
    EXPECT_EQ(snapshot, save()) << "cache, position, what can be taken back";
    const std::vector<int32_t> next = goOn(greedyOptions());
    ASSERT_EQ(ORIEL_OK,
              oriel_session_restore(loaded_.session.get(), snapshot.data(), snapshot.size()));
    EXPECT_EQ(next, goOn(greedyOptions()));
  }
};

TEST_F(RunningAhead, gives_the_same_tokens_and_leaves_the_same_session) {
  expectTheSame([&] { return draw(greedyOptions()); });
  unload();
  load(200);
  expectTheSame([&] { return draw(greedyOptions()); });
  (void)draw(greedyOptions());
  EXPECT_LE(executor_->begun_ahead, kTokens - 1) << "every token but the first";
  EXPECT_EQ(0u, executor_->dropped) << "none after the last that was asked for";
  EXPECT_EQ(kTokens, statsOf(loaded_).position - 5);
  skipIfTooSlow(executor_->begun_ahead);
}

// There is no slot that a token which may be dropped could take for nothing.
TEST_F(RunningAhead, ends_where_the_window_is_full) {
  oriel_generate_options sampling = greedyOptions();
  sampling.max_tokens = 200;
  expectTheSame([&] { return draw(sampling); });
  (void)draw(sampling);
  const oriel_plan plan = planOf(loaded_);
  const uint32_t slots = plan.sink_tokens + plan.window_tokens + plan.chunk_tokens - 1;
  EXPECT_LE(executor_->begun_ahead, slots - 5 - 1);
  skipIfTooSlow(executor_->begun_ahead);
}

TEST_F(RunningAhead, drops_the_step_of_a_token_that_ends_the_reply) {
  const std::string question = "Hello there!";
  bool stopped = false;
  const auto answer = [&] {
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(loaded_.session.get(), "user", question.data(),
                                       question.size()));
    oriel_generate_options sampling = greedyOptions();
    sampling.ignore_stop = 0;
    sampling.max_tokens = 150;
    std::vector<int32_t> ids;
    oriel_generation result = {};
    result.struct_size = sizeof(result);
    executor_->begun_ahead = executor_->dropped = 0;
    EXPECT_EQ(ORIEL_OK,
              oriel_chat_reply(loaded_.session.get(), &sampling, keepId, &ids, &result));
    stopped = result.stop_reason == ORIEL_STOP_TOKEN;
    return ids;
  };
  const auto reply = [&] {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
    return answer();
  };
  unload();
  load(200, ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf");  // its replies end
  expectTheSame(reply);
  // A machine that is busy with other things takes some tokens too long to go ahead of.
  for (int attempt = 0; attempt < 3 && executor_->dropped == 0; ++attempt) {
    (void)reply();
    ASSERT_TRUE(stopped);
  }
  const uint32_t dropped = executor_->dropped;
  EXPECT_LE(dropped, 1u);
  // The next message follows the reply as if nothing had been begun.
  expectTheSame([&] {
    std::vector<int32_t> ids = reply();
    const std::vector<int32_t> more = answer();
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  });
  skipIfTooSlow(dropped);
}

TEST_F(RunningAhead, stops_where_the_app_says_so_or_cancels) {
  unload();
  load(200);
  struct Stop {
    oriel_session* session;
    bool cancels;
    std::vector<int32_t> ids;
  };
  for (const bool cancels : {false, true}) {
    expectTheSame([&] {
      EXPECT_EQ(ORIEL_OK, oriel_session_reset(loaded_.session.get()));
      const std::vector<int32_t> prompt = {11, 42, 7, 99, 3};
      EXPECT_EQ(ORIEL_OK,
                oriel_session_append(loaded_.session.get(), prompt.data(), prompt.size()));
      Stop stop = {loaded_.session.get(), cancels, {}};
      const auto note = [](const oriel_token_event* event, void* user) {
        Stop* const self = static_cast<Stop*>(user);
        self->ids.push_back(event->id);
        if (self->ids.size() == 10 && self->cancels) {
          oriel_session_cancel(self->session);
        }
        return self->ids.size() == 10 && !self->cancels ? 1 : 0;
      };
      const oriel_generate_options sampling = greedyOptions();
      EXPECT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_OK,
                oriel_session_generate(loaded_.session.get(), &sampling, note, &stop, nullptr));
      EXPECT_EQ(15u, position());
      return stop.ids;
    });
  }
}

TEST_F(RunningAhead, does_not_where_the_next_token_is_drawn_or_penalised) {
  executor_->ahead = true;
  oriel_generate_options sampling = options();
  (void)draw(sampling);
  EXPECT_EQ(0u, executor_->begun_ahead);
  sampling.greedy = 1;
  sampling.repeat_penalty = 1.1f;
  (void)draw(sampling);
  EXPECT_EQ(0u, executor_->begun_ahead);
}

}  // namespace
}  // namespace oriel::test
