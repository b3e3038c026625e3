// A session on an executor that is watched: what it is asked for, and what is hidden from it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/api.h"
#include "support/api.h"
#include "support/forwarding_executor.h"

namespace oriel::test {

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
  bool ahead = false;  ///< whether the device is a GPU or not
  uint32_t logits_asked = 0;
  uint32_t asked_ahead = 0;
  uint32_t begun_ahead = 0;  ///< fewer where tokens take too long
  uint32_t dropped = 0;

 private:
  TopTokens nothing_ = {};
};

// Random weights: which token comes next is open, whatever the bundled model has learned.
class WatchedSession : public testing::Test {
 protected:
  static constexpr uint32_t kTokens = 48;

  void SetUp() override { load(64); }
  void TearDown() override { unload(); }

  void load(uint32_t window, const char* path = ORIEL_TEST_DATA "/models/llama-q8_0.gguf") {
    oriel_options options = makeOptions(&log_);
    options.window_tokens = window;
    options.chunk_tokens = 8;
    load(path, options);
  }
  void load(const std::string& path, const oriel_options& options) {
    unload();
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &model)) << log_.errors();
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
    loaded_.model.reset();
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
    executor_->forgetCounts();
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

}  // namespace oriel::test
