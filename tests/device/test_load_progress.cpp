// A load says how far it is from its first moment on, and ends soon after it is asked to: counted, not timed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/api.h"
#include "support/ledger.h"

namespace oriel_internal::test::test_load_progress {
namespace {

const char* const kTrained = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

/// What a load tells; it is asked to end at the `stop_at`-th time.
struct Told {
  explicit Told(const Ledger* ledger_of_app) : ledger(ledger_of_app) {}

  static int onProgress(uint64_t done, uint64_t total, void* user) {
    auto* const self = static_cast<Told*>(user);
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

oriel_status loadOnce(oriel_options options, const Ledger& ledger, Told* told) {
  options.allocator = ledger.allocator();
  options.progress = Told::onProgress;
  options.progress_user = told;
  oriel_model* model = nullptr;
  const oriel_status status = oriel_model_load(kTrained, &options, &model);
  EXPECT_EQ(status == ORIEL_OK, model != nullptr);
  oriel_model_free(model);
  return status;
}

TEST(LoadProgress, begins_before_anything_is_taken_and_covers_every_phase) {
  Ledger ledger;
  Told told(&ledger);
  oriel_options options = makeOptions();
  options.memory_bytes = 64u << 20;
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
  EXPECT_EQ(0u, told.taken_before_first);
  EXPECT_EQ(told.total, told.last);
  // The header, each pass over the vocabulary, plans, templates, the executor; then pieces that are read and sent.
  EXPECT_GE(told.asks_before_weights, 10u);
  EXPECT_GE(told.asks_after_weights, 1u);
  EXPECT_GE(told.asks, told.total / (256 << 10));
}

// Where the app's allocator may give anything, arenas are zeroed by hand.
TEST(LoadProgress, goes_on_while_memory_is_zeroed) {
  oriel_options options = makeOptions();
  if (options.device != ORIEL_DEVICE_CPU) {
    GTEST_SKIP() << "the driver zeroes";
  }
  Ledger ledger;
  const auto asks = [&](uint32_t window) {
    options.memory_bytes = uint64_t{2} << 30;
    options.window_tokens = window;
    options.k_format = options.v_format = ORIEL_KV_F16;
    Told told(&ledger);
    EXPECT_EQ(ORIEL_OK, loadOnce(options, ledger, &told));
    return told.asks_before_weights;
  };
  const uint64_t few = asks(1000);
  const uint64_t peak = ledger.peak_bytes;
  const uint64_t many = asks(30000);
  ASSERT_GT(ledger.peak_bytes, peak + (100u << 20)) << "the larger window is no larger";
  EXPECT_GE(many, few + (ledger.peak_bytes - peak) / (16 << 20) - 1);
}

TEST(LoadProgress, a_load_that_is_stopped_at_any_ask_leaves_nothing_behind) {
  CapturedLog log;
  oriel_options options = makeOptions(&log);
  options.memory_bytes = 64u << 20;
  options.constraints = 1;
  options.system_prompt = "You are kind, and you know a lot about hedgehogs.";
  options.system_prompt_bytes = std::string(options.system_prompt).size();
  Ledger ledger;
  Told all(&ledger);
  ASSERT_EQ(ORIEL_OK, loadOnce(options, ledger, &all));
  const bool is_cpu = options.device == ORIEL_DEVICE_CPU;
  const uint64_t step = is_cpu ? 1 : std::max<uint64_t>(all.asks / 12, 1);
  for (uint64_t k = 1; k <= all.asks; k += step) {
    Told told(&ledger);
    told.stop_at = k;
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, loadOnce(options, ledger, &told)) << "ask " << k;
    EXPECT_EQ(k, told.asks) << "it went on asking";
    EXPECT_EQ(0u, ledger.live_bytes) << "ask " << k;
  }
  EXPECT_EQ("", log.errors());
}

// A resume that is stopped leaves the model trimmed, and another one takes it back.
TEST(LoadProgress, a_resume_is_stopped_at_any_ask_too) {
  CapturedLog log;
  oriel_options options = makeOptions(&log);
  options.memory_bytes = 64u << 20;
  Ledger ledger;
  options.allocator = ledger.allocator();
  const Loaded loaded = load(kTrained, options);
  ASSERT_TRUE(loaded.session);
  Told all(&ledger);
  ASSERT_EQ(ORIEL_OK, oriel_trim(loaded.model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), Told::onProgress, &all));
  const uint64_t step = std::max<uint64_t>(all.asks / 8, 1);
  for (uint64_t k = 1; k <= all.asks; k += step) {
    ASSERT_EQ(ORIEL_OK, oriel_trim(loaded.model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
    Told told(&ledger);
    told.stop_at = k;
    ASSERT_EQ(ORIEL_ERROR_CANCELLED, oriel_resume(loaded.model.get(), Told::onProgress, &told))
        << "ask " << k;
    ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), nullptr, nullptr)) << "ask " << k;
  }
  const std::vector<int32_t> prompt(8, 7);
  ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size()));
  EXPECT_EQ(3u, greedy(loaded, 3).size());
  EXPECT_EQ("", log.errors());
}

}  // namespace
}  // namespace oriel_internal::test::test_load_progress
