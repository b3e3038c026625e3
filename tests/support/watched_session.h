// Executors in front of another, which watch its calls or lose the device, and sessions on them.
#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/api.h"
#include "exec/executor.h"
#include "support/api.h"

namespace oriel_internal::test {

// An executor in front of another, for tests that observe or change single calls.

/// Forwards every call to `inner`, which it does not own.
class ForwardingExecutor : public Executor {
 public:
  explicit ForwardingExecutor(Executor* inner) : inner_(inner) {}

  Status beginWrite(uint64_t bytes, void** piece) override {
    return inner_->beginWrite(bytes, piece);
  }
  Status endWrite(const BufferRef& to, uint64_t offset, uint64_t bytes) override {
    return inner_->endWrite(to, offset, bytes);
  }
  Status finishLoad() override { return inner_->finishLoad(); }
  Status finishWrites() override { return inner_->finishWrites(); }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    return inner_->read(from, offset, bytes, piece);
  }

  void* step() override { return inner_->step(); }
  void* rowsOfStep(const BufferRef& place) override { return inner_->rowsOfStep(place); }
  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override { return inner_->run(what, stop); }
  bool runsAhead() const override { return inner_->runsAhead(); }
  void* aheadStep() override { return inner_->aheadStep(); }
  Status runAhead(bool* more) override { return inner_->runAhead(more); }
  Status dropAhead() override { return inner_->dropAhead(); }
  const TopTokens* top() const override { return inner_->top(); }
  Status logits(uint32_t output, const float** values) override {
    return inner_->logits(output, values);
  }
  Status keptLogits(uint32_t session, const float** values) override {
    return inner_->keptLogits(session, values);
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    return inner_->copy(pieces, count);
  }
  bool drain() override { return inner_->drain(); }
  Status forget() override { return inner_->forget(); }
  Status forget(const BufferRef* pieces, size_t count) override {
    return inner_->forget(pieces, count);
  }
  Status giveBack(ArenaSet arenas) override { return inner_->giveBack(arenas); }
  Status takeAgain(ArenaSet arenas) override { return inner_->takeAgain(arenas); }

  uint64_t allocatedBytes(ArenaKind kind) const override { return inner_->allocatedBytes(kind); }
  const char* deviceName() const override { return inner_->deviceName(); }
  const char* driverName() const override { return inner_->driverName(); }
  PipelineStats pipelineStats() const override { return inner_->pipelineStats(); }
  void describeFeatures(char* text, size_t capacity) const override {
    inner_->describeFeatures(text, capacity);
  }
  const char* pathName() const override { return inner_->pathName(); }

  MatmulTuning* matmulTuning() override { return inner_->matmulTuning(); }
  Status timeOps(StepList list, OpTime* times) override { return inner_->timeOps(list, times); }
  bool multipliesHalves(StepList list, const Op* ops, uint32_t count) const override {
    return inner_->multipliesHalves(list, ops, count);
  }

 private:
  Executor* inner_;
};

// An executor that loses its device on request, and models that get another device.

enum class Work {
  kRun,
  kRunAhead,
  kRead,
  kLogits,
  kForget,
  kWrite,
  kCopy,
  kTakeAgain,
  kFinishLoad,
  kNothing
};

/// Forwards everything until the device is lost: at the `after`-th call of a kind from now.
class LosingExecutor : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    ORIEL_TRY(lose(Work::kRun));
    return ForwardingExecutor::run(what, stop);
  }
  bool runsAhead() const override {
    return lose_in == Work::kRunAhead || ForwardingExecutor::runsAhead();
  }
  void* aheadStep() override {
    return ForwardingExecutor::runsAhead() ? ForwardingExecutor::aheadStep() : block_.data();
  }
  Status runAhead(bool* more) override {
    ORIEL_TRY(lose(Work::kRunAhead));
    return ForwardingExecutor::runAhead(more);
  }
  Status dropAhead() override {
    ORIEL_TRY(lost_);
    return ForwardingExecutor::dropAhead();
  }
  Status read(const BufferRef& from, uint64_t offset, uint64_t bytes, const void** piece) override {
    ORIEL_TRY(lose(Work::kRead));
    return ForwardingExecutor::read(from, offset, bytes, piece);
  }
  Status logits(uint32_t output, const float** values) override {
    ORIEL_TRY(lose(Work::kLogits));
    return ForwardingExecutor::logits(output, values);
  }
  Status beginWrite(uint64_t bytes, void** piece) override {
    ORIEL_TRY(lose(Work::kWrite));
    return ForwardingExecutor::beginWrite(bytes, piece);
  }
  Status finishWrites() override {
    ORIEL_TRY(lose(Work::kWrite));
    return ForwardingExecutor::finishWrites();
  }
  Status keptLogits(uint32_t session, const float** values) override {
    ORIEL_TRY(lose(Work::kLogits));
    return ForwardingExecutor::keptLogits(session, values);
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    ORIEL_TRY(lose(Work::kCopy));
    return ForwardingExecutor::copy(pieces, count);
  }
  Status giveBack(ArenaSet arenas) override {
    ORIEL_TRY(lost_);
    return ForwardingExecutor::giveBack(arenas);
  }
  Status takeAgain(ArenaSet arenas) override {
    ORIEL_TRY(lose(Work::kTakeAgain));
    return ForwardingExecutor::takeAgain(arenas);
  }
  Status finishLoad() override {
    ORIEL_TRY(lose(Work::kFinishLoad));
    return ForwardingExecutor::finishLoad();
  }
  Status forget() override {
    ORIEL_TRY(lose(Work::kForget));
    return ForwardingExecutor::forget();
  }
  Status forget(const BufferRef* pieces, size_t count) override {
    ORIEL_TRY(lose(Work::kForget));
    return ForwardingExecutor::forget(pieces, count);
  }

  Log log;
  Work lose_in = Work::kNothing;
  uint32_t after = 1;
  oriel_status how = ORIEL_ERROR_DEVICE;
  uint32_t asked_since = 0;  ///< calls on a lost device
  bool isLost() const { return !lost_.ok(); }
  /// Lets the model be freed.
  void mend() {
    lost_ = kOk;
    lose_in = Work::kNothing;
  }

 private:
  Status lose(Work work) {
    if (!lost_.ok()) {
      ++asked_since;
    } else if (work == lose_in && --after == 0) {
      lost_ = log.fail(how, "cannot wait for the device, it was lost: call oriel_session_recover");
    }
    return lost_;
  }
  Status lost_;
  std::vector<uint32_t> block_ = std::vector<uint32_t>(1 << 16);
};

/// A model whose device can be lost and recreated by oriel_session_recover.
class LosableModel {
  struct alignas(64) Block {
    unsigned char bytes[1024];
  };
  std::vector<std::unique_ptr<Block>> blocks_;  // outlive the model

 public:
  LosableModel(const std::string& path, const Options& options) {
    oriel_model* loaded = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(path.c_str(), &options, &loaded)) << path;
    model.reset(loaded);
    if (loaded != nullptr) {
      watch();
    }
  }
  ~LosableModel() { mend(); }
  LosableModel(const LosableModel&) = delete;
  LosableModel& operator=(const LosableModel&) = delete;

  /// Puts a losable executor in front of the model's current one; both are destroyed together.
  LosingExecutor* watch() {
    struct Owning final : LosingExecutor {
      explicit Owning(Executor* inner, LosingExecutor** at)
          : LosingExecutor(inner), inner_(inner), at_(at) {}
      ~Owning() override {
        destroyExecutor(inner_);
        *at_ = *at_ == this ? nullptr : *at_;
      }
      Executor* const inner_;
      LosingExecutor** const at_;
    };
    blocks_.push_back(std::make_unique<Block>());
    static_assert(sizeof(Owning) <= sizeof(Block), "room");
    front = new (blocks_.back().get()) Owning(model->executor, &front);
    model->executor = front;
    for (uint32_t i = 0; i < kMaxSessions; ++i) {
      if (oriel_session* const handle = model->guard.entry(i).handle; handle != nullptr) {
        handle->session->moveTo(front);
      }
    }
    return front;
  }
  void lose(Work in, uint32_t after, oriel_status how = ORIEL_ERROR_DEVICE) {
    front->lose_in = in;
    front->after = after;
    front->how = how;
  }
  void mend() {
    if (front != nullptr) {
      front->mend();
    }
  }

  ModelPtr model;
  LosingExecutor* front = nullptr;  ///< null: destroyed
};

// A model in a session on its own executor, with another one in front.

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
