// Cancelling between any two submissions leaves no half messages behind.
#include <gtest/gtest.h>

#include "api/api.h"
#include "support/api.h"

namespace oriel::test {
namespace {

/// Hands everything on, and cancels the session after a number of runs.
class CancellingExecutor final : public Executor {
 public:
  explicit CancellingExecutor(Executor* inner) : inner_(inner) {}

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    const Status status = inner_->run(what, stop);
    if (runs_left != 0 && --runs_left == 0) {
      oriel_session_cancel(session);
    }
    return status;
  }
  Status beginWrite(uint64_t bytes, void** piece) override { return inner_->beginWrite(bytes, piece); }
  Status endWrite(const BufferRef& to, uint64_t offset, uint64_t bytes) override {
    return inner_->endWrite(to, offset, bytes);
  }
  Status finishLoad() override { return inner_->finishLoad(); }
  Status finishWrites() override { return inner_->finishWrites(); }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    return inner_->read(from, offset, bytes, piece);
  }
  void* step() override { return inner_->step(); }
  float* logits() override { return inner_->logits(); }
  Status clearCache() override { return inner_->clearCache(); }
  uint64_t allocatedBytes(ArenaKind kind) const override { return inner_->allocatedBytes(kind); }
  const char* deviceName() const override { return inner_->deviceName(); }
  const char* driverName() const override { return inner_->driverName(); }

  uint32_t runs_left = 0;
  oriel_session* session = nullptr;

 private:
  Executor* inner_;
};

class Cancel : public testing::Test {
 protected:
  void SetUp() override {
    oriel_options options = makeOptions();
    options.device = ORIEL_DEVICE_CPU;  // the rule is the session's
    options.chunk_tokens = 2;
    options.window_tokens = 256;
    oriel_model* model = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_model_load(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf",
                                         &options, &model));
    loaded_.model.reset(model);
    real_ = model->executor;
    executor_ = std::make_unique<CancellingExecutor>(real_);
    model->executor = executor_.get();
    oriel_session* session = nullptr;
    ASSERT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
    loaded_.session.reset(session);
    executor_->session = session;
  }
  void TearDown() override {
    loaded_.session.reset();
    loaded_.model->executor = real_;
  }
  oriel_session* session() { return loaded_.session.get(); }

  Loaded loaded_;
  Executor* real_ = nullptr;
  std::unique_ptr<CancellingExecutor> executor_;
};

TEST_F(Cancel, in_the_middle_of_a_message_takes_the_message_back) {
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
  const uint64_t before = statsOf(loaded_).position;
  executor_->runs_left = 2;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_add(session(), "user", "And one more thing, please.", 27));
  EXPECT_EQ(before, statsOf(loaded_).position);
  EXPECT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "And one more thing, please.", 27));
}

TEST_F(Cancel, while_a_reply_is_opened_takes_its_opening_back) {
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
  const uint64_t before = statsOf(loaded_).position;
  executor_->runs_left = 1;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_reply(session(), nullptr, nullptr, nullptr, nullptr));
  EXPECT_EQ(before, statsOf(loaded_).position);
  oriel_generate_options options = {};
  options.struct_size = sizeof(options);
  options.max_tokens = 3;
  EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session(), &options, nullptr, nullptr, nullptr));
}

}  // namespace
}  // namespace oriel::test
