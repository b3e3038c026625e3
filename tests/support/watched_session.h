// A model in a session on its own executor, with another one in front.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/api.h"
#include "support/api.h"
#include "support/losing_executor.h"

namespace oriel_internal::test {

template <class Watcher>
struct WatchedModel {
  /// `executor` and session() are null if the model could not be loaded, which is a test failure.
  WatchedModel(const char* path, const Options& options) {
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path, &options, &model));
    if (model == nullptr) {
      return;
    }
    loaded.model.reset(model);
    real_ = model->executor;
    executor = std::make_unique<Watcher>(real_);
    model->executor = executor.get();
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
    loaded.session.reset(session);
  }
  ~WatchedModel() {
    loaded.session.reset();
    if (loaded.model != nullptr) {
      loaded.model->executor = real_;
    }
  }
  WatchedModel(const WatchedModel&) = delete;
  WatchedModel& operator=(const WatchedModel&) = delete;
  oriel_session* session() const { return loaded.session.get(); }

  Loaded loaded;
  std::unique_ptr<Watcher> executor;

 private:
  Executor* real_ = nullptr;
};

// A session on an observed executor: counts its calls and can hide results.

/// Counts calls for all logits, and can hide the best tokens.
class WatchingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  const TopTokens* top() const override { return hidden ? &nothing_ : ForwardingExecutor::top(); }
  Status logits(uint32_t output, const float** values) override {
    ++logits_asked;
    return ForwardingExecutor::logits(output, values);
  }

  bool runsAhead() const override { return ahead; }
  Status runAhead(bool* more) override {
    asked_ahead += *more ? 1 : 0;
    const Status status = ForwardingExecutor::runAhead(more);
    begun_ahead += *more ? 1 : 0;
    return status;
  }
  Status dropAhead() override {
    ++dropped;
    return ForwardingExecutor::dropAhead();
  }

  void forgetCounts() { logits_asked = asked_ahead = begun_ahead = dropped = 0; }

  bool hidden = false;
  bool ahead = false;  ///< independent of the device being a GPU
  uint32_t logits_asked = 0;
  uint32_t asked_ahead = 0;
  uint32_t begun_ahead = 0;  ///< fewer if tokens take too long
  uint32_t dropped = 0;

 private:
  TopTokens nothing_ = {};
};

// Random weights: the next token does not depend on the bundled model's training.
class WatchedSession : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 48;

  void SetUp() override { load(64); }

  void load(uint32_t window, const char* path = ORIEL_TEST_DATA "/models/llama-q8_0.gguf") {
    Options options = makeOptions(&log_);
    options.window_tokens = window;
    options.set("prefill_batch", 8);
    load(path, options);
  }
  void load(const std::string& path, const Options& options) {
    model_.reset();
    model_ = std::make_unique<WatchedModel<WatchingExecutor>>(path.c_str(), options);
    ASSERT_NE(nullptr, model_->session()) << log_.errors();
  }

  static ReplyOptions options() {
    ReplyOptions options;
    options.max_tokens = kTokens;
    options.set("ignore_stop", true);
    options.seed = 3;
    options.temperature = 3.0f;  // makes every token random
    return options;
  }

  std::vector<int32_t> draw(const ReplyOptions& sampling) {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
    const std::vector<int32_t> prompt = {11, 42, 7, 99, 3};
    EXPECT_EQ(ORIEL_OK, oriel_session_append(model_->session(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    return goOn(sampling);
  }

  std::vector<uint8_t> save() { return savedBytes(model_->session()); }

  std::vector<int32_t> goOn(const ReplyOptions& sampling) {
    std::vector<int32_t> ids;
    model_->executor->forgetCounts();
    EXPECT_EQ(ORIEL_OK, oriel_session_generate(model_->session(), &sampling, keepId, &ids, nullptr))
        << log_.errors();
    return ids;
  }

  CapturedLog log_;
  std::unique_ptr<WatchedModel<WatchingExecutor>> model_;
};

}  // namespace oriel_internal::test
