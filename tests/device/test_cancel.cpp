// Cancelling between any two pieces of work ends the call at once and leaves nothing half done.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_cancel {
namespace {

/// Forwards everything, and cancels the session after a number of runs.
class CancellingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    run_asked_ = 0;
    stop_ = stop;
    const Status status = ForwardingExecutor::run(
        what, {[](void* self) { return static_cast<CancellingExecutor*>(self)->ask(); }, this});
    if (runs_left != 0 && --runs_left == 0) {
      oriel_session_cancel(session);
    }
    return status;
  }

  uint32_t runs_left = 0;
  /// Another thread cancels the session before this piece of any run. 0: never.
  uint32_t cancel_before_piece = 0;
  uint32_t asked_since_cancelled = 0;
  oriel_session* session = nullptr;

 private:
  bool ask() {
    if (asked_since_cancelled != 0) {
      ++asked_since_cancelled;
    } else if (stop_.asked != nullptr && ++run_asked_ == cancel_before_piece) {
      std::thread([this] { oriel_session_cancel(session); }).join();
      asked_since_cancelled = 1;
    }
    return stop_();
  }

  StopCheck stop_;  // of the current run
  uint32_t run_asked_ = 0;
};

constexpr const char* kBundledModel = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

/// A model in a session on a CancellingExecutor.
struct Cancellable : WatchedModel<CancellingExecutor> {
  explicit Cancellable(const Options& options, const char* path = kBundledModel)
      : WatchedModel(path, options) {
    if (executor != nullptr) {
      executor->session = session();
    }
  }
};

class Cancel : public testing::Test {
 protected:
  static Options options() {
    Options options = makeOptions();
    options.device = "cpu";  // the rule is the session's
    options.set("prefill_batch", 2);
    options.window_tokens = 256;
    return options;
  }
  void SetUp() override { ASSERT_NE(nullptr, session()); }
  oriel_session* session() const { return model_.session(); }

  Cancellable model_{options()};
};

// The penalty and the reply's counters must leave out removed tokens.
RUNS_ON(kOneDevice);
TEST_F(Cancel, a_message_that_was_taken_back_leaves_no_trace_in_the_reply) {
  ReplyOptions options = greedyOptions(40);
  options.greedy = 0;
  options.seed = 5;
  options.temperature = 3;
  options.set("repeat_penalty", 1.9f);
  options.set("ignore_stop", true);
  const auto reply = [&](bool cancelled) {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(session()));
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
    if (cancelled) {
      model_.executor->runs_left = 8;
      const std::string text =
          "Once there was a little dog. What is your name? Tell me a story, please.";
      EXPECT_EQ(ORIEL_ERROR_CANCELLED, oriel_chat_add(session(), "user", text.data(), text.size()));
    }
    EXPECT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "And now?", 8));
    std::vector<int32_t> ids;
    oriel_generation result = ORIEL_INIT(oriel_generation);
    EXPECT_EQ(ORIEL_OK, oriel_chat_reply(session(), &options, keepId, &ids, &result));
    ids.push_back(static_cast<int32_t>(result.prompt_tokens));
    return ids;
  };
  const std::vector<int32_t> expected = reply(false);
  EXPECT_EQ(expected, reply(true));
}

RUNS_ON(kOneDevice);
TEST_F(Cancel, in_the_middle_of_a_message_takes_the_message_back) {
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
  const uint64_t before = statsOf(model_.loaded).position;
  model_.executor->runs_left = 2;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            oriel_chat_add(session(), "user", "And one more thing, please.", 27));
  EXPECT_EQ(before, statsOf(model_.loaded).position);
  EXPECT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "And one more thing, please.", 27));
}

RUNS_ON(kOneDevice);
TEST_F(Cancel, while_a_reply_is_opened_takes_its_opening_back) {
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
  const uint64_t before = statsOf(model_.loaded).position;
  model_.executor->runs_left = 1;
  const Heard cancelled = listen(oriel_chat_reply, model_.loaded, greedyOptions(8));
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, cancelled.status);
  EXPECT_EQ(ORIEL_STOP_CANCELLED, cancelled.result.stop_reason);
  EXPECT_EQ(0u, cancelled.result.tokens);
  EXPECT_EQ(before, statsOf(model_.loaded).position);
  const Heard again = listen(oriel_chat_reply, model_.loaded, greedyOptions(8));
  EXPECT_EQ(ORIEL_OK, again.status);

  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session()));
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(session(), "user", "Hello there!", 12));
  EXPECT_EQ(again.ids, listen(oriel_chat_reply, model_.loaded, greedyOptions(8)).ids);
}

// ---- Too late, or too early ----------------------------------------------------------------------

RUNS_ON(kOneDevice);
TEST_F(Cancel, that_meets_no_call_changes_nothing) {
  oriel_session_cancel(session());
  EXPECT_EQ(ORIEL_OK, append(model_.loaded, {1, 2, 3}));
  oriel_session_cancel(session());
  EXPECT_EQ(1u, greedy(model_.loaded, 1).size());
  oriel_session_cancel(session());
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(session()));
  EXPECT_EQ(ORIEL_OK, append(model_.loaded, {1, 2, 3}));
}

RUNS_ON(kOneDevice);
TEST_F(Cancel, of_a_call_that_has_nothing_more_to_begin_does_not_stop_the_next_one) {
  model_.executor->runs_left = 2;  // after the second and last chunk
  EXPECT_EQ(ORIEL_OK, append(model_.loaded, {1, 2, 3, 4}));
  EXPECT_EQ(0u, model_.executor->runs_left);
  EXPECT_EQ(ORIEL_OK, append(model_.loaded, {5, 6}));
  // A token callback that cancels after the last token.
  const ReplyOptions one = greedyOptions(1);
  const auto cancel = [](const oriel_token_event*, void* session) {
    oriel_session_cancel(static_cast<oriel_session*>(session));
    return 0;
  };
  EXPECT_EQ(ORIEL_OK, oriel_session_generate(session(), &one, cancel, session(), nullptr));
  EXPECT_EQ(3u, greedy(model_.loaded, 3).size());
}

RUNS_ON(kOneDevice);
TEST_F(Cancel, stays_until_its_call_has_ended) {
  const std::vector<int32_t> ids(8, 7);
  const auto cancel = [](size_t, const float*, size_t, void* session) {
    oriel_session_cancel(static_cast<oriel_session*>(session));
    oriel_session_cancel(static_cast<oriel_session*>(session));
    return 0;
  };
  EXPECT_EQ(ORIEL_ERROR_CANCELLED,
            oriel_session_append(session(), ids.data(), ids.size(), cancel, session()));
  EXPECT_EQ(ORIEL_OK, append(model_.loaded, ids));
}

// One thread makes calls; the other cancels every even call at a random moment. No odd call may end early. A cancel is
// often overtaken by the end of its call.
RUNS_ON(kEachDevice);
TEST_F(Cancel, from_a_second_thread_never_ends_another_call_than_the_one_that_ran) {
  const uint32_t n_rounds = allCases() ? 2000 : 500;
  std::atomic<uint32_t> begun{0};  // the call that is about to begin, or runs
  std::atomic<uint32_t> over{0};   // the last call that the canceller has finished with
  std::thread canceller([&] {
    for (uint32_t at = 2; at <= n_rounds; at += 2) {
      while (begun.load() < at) {
        std::this_thread::yield();
      }
      for (uint32_t i = 0; i < at % 64; ++i) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
      oriel_session_cancel(session());
      over.store(at);
    }
  });
  uint32_t cancelled = 0;
  uint32_t wrong = 0;
  for (uint32_t at = 1; at <= n_rounds; ++at) {
    begun.store(at);
    const int32_t id = 7;
    const oriel_status status = oriel_session_append(session(), &id, 1, nullptr, nullptr);
    if (at % 2 == 0) {
      cancelled += status == ORIEL_ERROR_CANCELLED ? 1 : 0;
      wrong += status == ORIEL_OK || status == ORIEL_ERROR_CANCELLED ? 0 : 1;
      while (over.load() < at) {
        std::this_thread::yield();
      }
    } else {
      wrong += status == ORIEL_OK ? 0 : 1;
    }
  }
  canceller.join();
  EXPECT_EQ(0u, wrong) << cancelled << " of " << n_rounds / 2 << " were cancelled";
}

enum class Kind { kBundled, kMixedWindows, kShortConvolutions };

class CancelPrefill : public testing::TestWithParam<Kind> {
 protected:
  static constexpr uint32_t kWindow = 32, kChunk = 32, kBefore = 72;

  /// On the device under test, with a wrapped ring and chunks of several pieces: the chunk pace is still the initial
  /// one, since all tokens so far came one by one.
  struct Wrapped : Cancellable {
    explicit Wrapped(const std::string& path) : Cancellable(options(), path.c_str()) {
      for (const int32_t id : someIds(kBefore, 300)) {
        EXPECT_EQ(ORIEL_OK, oriel_session_append(session(), &id, 1, nullptr, nullptr));
      }
    }
    static Options options() {
      Options options = makeOptions();
      options.set("prefill_batch", kChunk);
      options.window_tokens = kWindow;
      return options;
    }
    oriel_status append(uint32_t count) {
      const std::vector<int32_t> ids(count, 77);
      return oriel_session_append(session(), ids.data(), ids.size(), nullptr, nullptr);
    }
  };

  void SetUp() override {
    if (GetParam() != Kind::kBundled) {
      RandomLlama model = GetParam() == Kind::kMixedWindows ? smallGemma() : smallLfm2();
      model.n_layers = 6;  // wide enough for a chunk of several pieces
      model.n_embd = 256;
      model.n_heads = 16;
      model.n_ff = 1024;
      for (size_t layer = model.kv_heads_by_layer.size(); 0 < layer && layer < model.n_layers;
           ++layer) {
        model.kv_heads_by_layer.push_back(model.kv_heads_by_layer[layer % 6]);
      }
      file_ = std::make_unique<TemporaryModel>(model);
    }
  }
  std::string path() const { return file_ != nullptr ? file_->path() : kBundledModel; }

 private:
  std::unique_ptr<TemporaryModel> file_;
};

RUNS_ON(kCpu, "short_convolutions");
RUNS_ON(kNightly, "mixed_windows");
TEST_P(CancelPrefill, from_another_thread_ends_it_before_another_piece_begins) {
  Wrapped wrapped(path());
  ASSERT_NE(nullptr, wrapped.executor);
  wrapped.executor->cancel_before_piece = 3;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, wrapped.append(10 * kChunk));
  EXPECT_EQ(1u, wrapped.executor->asked_since_cancelled) << "the answer was yes at once";
  EXPECT_EQ(kBefore, statsOf(wrapped.loaded).position) << "in its first chunk";
}

RUNS_ON(kCpu);
RUNS_ON(kNightly, "short_convolutions");
TEST_P(CancelPrefill, leaves_a_session_that_goes_on_as_if_the_chunk_had_not_begun) {
  Wrapped plain(path());
  Wrapped wrapped(path());
  ASSERT_NE(nullptr, wrapped.executor);
  const std::vector<float> before = logitsOf(wrapped.loaded);
  wrapped.executor->cancel_before_piece = 3;
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, wrapped.append(kChunk));
  ASSERT_EQ(kBefore, statsOf(wrapped.loaded).position);
  EXPECT_EQ(before, logitsOf(wrapped.loaded)) << "still those of the last committed token";
  ASSERT_EQ(ORIEL_OK, wrapped.append(kChunk));
  ASSERT_EQ(ORIEL_OK, plain.append(kChunk));
  EXPECT_EQ(logitsOf(plain.loaded), logitsOf(wrapped.loaded));
}

// They are computed in rows that the next chunk overwrites.
RUNS_ON(kCpu);
RUNS_ON(kNightly, "mixed_windows");
TEST_P(CancelPrefill, leaves_the_logits_of_an_evaluation) {
  Wrapped wrapped(path());
  ASSERT_NE(nullptr, wrapped.executor);
  const auto rows = evaluate(wrapped.loaded, someIds(9, 300));
  wrapped.executor->cancel_before_piece = 3;
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, wrapped.append(kChunk));
  EXPECT_TRUE(rows.back() == logitsOf(wrapped.loaded));
}

RUNS_ON(kCpu);
RUNS_ON(kNightly, "short_convolutions");
TEST_P(CancelPrefill, does_not_let_go_back_to_what_its_chunk_may_have_overwritten) {
  Wrapped wrapped(path());
  ASSERT_NE(nullptr, wrapped.executor);
  ASSERT_EQ(ORIEL_OK, goBackTo(wrapped.session(), kBefore - 1));
  wrapped.executor->cancel_before_piece = 3;
  ASSERT_EQ(ORIEL_ERROR_CANCELLED, wrapped.append(kChunk));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(wrapped.session(), kBefore - 2));
  EXPECT_EQ(kBefore - 1, statsOf(wrapped.loaded).position);
}

INSTANTIATE_TEST_SUITE_P(Models, CancelPrefill,
                         testing::Values(Kind::kBundled, Kind::kMixedWindows,
                                         Kind::kShortConvolutions),
                         [](const testing::TestParamInfo<Kind>& tested) {
                           return tested.param == Kind::kBundled        ? "bundled"
                                  : tested.param == Kind::kMixedWindows ? "mixed_windows"
                                                                        : "short_convolutions";
                         });

}  // namespace
}  // namespace oriel_internal::test::test_cancel
