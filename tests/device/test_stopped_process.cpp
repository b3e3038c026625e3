// A process that was stopped during a step continues, regardless of its time limit.
#include <gtest/gtest.h>

#include "support/stopped.h"
#include "support/watched_model.h"

#ifndef _WIN32

namespace oriel_internal::test::test_stopped_process {
namespace {

constexpr uint32_t kTimeoutMs = 200;
constexpr long kStoppedMs = 700;

/// Forwards everything, and stops the process during a run.
class StoppingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    stop_ = stop;
    return ForwardingExecutor::run(
        what, {[](void* self) { return static_cast<StoppingExecutor*>(self)->ask(); }, this});
  }
  uint32_t stop_at = 0;  ///< after this many checks; 0: never
  uint32_t stopped = 0;

 private:
  bool ask() {
    if (stop_at != 0 && --stop_at == 0) {
      stopThisProcess(kStoppedMs);
      ++stopped;
    }
    return stop_();
  }
  StopCheck stop_;
};

TEST(StoppedProcess, a_session_on_the_cpu_goes_on_where_it_was) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.device = "cpu";
  options.set("device_timeout_ms", kTimeoutMs);
  options.window_tokens = 64;
  options.set("prefill_batch", 16);
  WatchedModel<StoppingExecutor> model(ORIEL_TEST_DATA "/models/llama-mqa.gguf", options);
  ASSERT_NE(nullptr, model.session()) << log.errors();
  const std::vector<int32_t> ids = someIds(40, 500);
  ASSERT_EQ(ORIEL_OK,
            oriel_session_append(model.session(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> expected = logitsOf(model.loaded);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(model.session()));
  model.executor->stop_at = 12;  // between two operations of the first chunk
  EXPECT_EQ(ORIEL_OK,
            oriel_session_append(model.session(), ids.data(), ids.size(), nullptr, nullptr))
      << log.errors();
  EXPECT_EQ(1u, model.executor->stopped);
  EXPECT_EQ(expected, logitsOf(model.loaded));
}

}  // namespace
}  // namespace oriel_internal::test::test_stopped_process

#endif
