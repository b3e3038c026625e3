// Greedy decoding that starts the next step before the host has seen the last token leaves no trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "support/random_families.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_run_ahead {
namespace {

class RunningAhead : public WatchedSession {
 protected:
  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the CPU executor does not run ahead";
    }
    WatchedSession::SetUp();
  }
  static ReplyOptions greedyOptions() {
    ReplyOptions options = WatchedSession::options();
    options.greedy = 1;
    return options;
  }
  /// Steps are started early depending on the time per token.
  static void skipIfTooSlow(uint32_t times) {
    if (times == 0) {
      GTEST_SKIP() << "no token was short enough to go ahead of: a busy machine";
    }
  }
  uint64_t position() { return statsOf(model_->loaded).position; }

  /// Starts an empty session with `tokens` prompt tokens.
  void begin(size_t tokens) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
    append(tokens);
  }
  void append(size_t tokens) {
    std::vector<int32_t> ids(tokens);
    for (size_t i = 0; i < tokens; ++i) {
      ids[i] = static_cast<int32_t>((i + 3) * 31 % 300);
    }
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(model_->session(), ids.data(), ids.size(), nullptr, nullptr));
  }
  /// A reply cancelled at its third token, so that an early fourth is dropped.
  std::vector<int32_t> cancelledReply() {
    struct Reply {
      oriel_session* session;
      std::vector<int32_t> ids;
    } reply = {model_->session(), {}};
    const auto note = [](const oriel_token_event* event, void* user) {
      Reply* const self = static_cast<Reply*>(user);
      self->ids.push_back(event->id);
      if (self->ids.size() == 3) {
        oriel_session_cancel(self->session);
      }
      return 0;
    };
    const ReplyOptions sampling = greedyOptions();
    EXPECT_EQ(ORIEL_ERROR_CANCELLED,
              oriel_session_generate(model_->session(), &sampling, note, &reply, nullptr));
    EXPECT_LE(3u, reply.ids.size());  // the last event may carry the rest of a character
    return reply.ids;
  }

  /// Runs twice, once with early steps: both must give and leave the same.
  template <typename Work>
  void expectTheSame(const Work& work, uint32_t next_tokens = kTokens) {
    ReplyOptions after = greedyOptions();
    after.max_tokens = next_tokens;
    model_->executor->ahead = false;
    model_->executor->forgetCounts();
    const std::vector<int32_t> ids = work();
    EXPECT_EQ(0u, model_->executor->asked_ahead);
    const std::vector<float> logits = logitsOf(model_->loaded);
    const std::vector<uint8_t> snapshot = save();
    const std::vector<int32_t> next = goOn(after);
    model_->executor->ahead = true;
    model_->executor->forgetCounts();
    EXPECT_EQ(ids, work());
    EXPECT_EQ(logits, logitsOf(model_->loaded));
    EXPECT_EQ(snapshot, save()) << "cache, position, what can be taken back";
    EXPECT_EQ(next, goOn(after));
    ASSERT_EQ(ORIEL_OK, restoreFrom(model_->session(), snapshot));
    EXPECT_EQ(next, goOn(after));
  }
};

RUNS_ON(kOneDevice | kValidated);
TEST_F(RunningAhead, gives_the_same_tokens_and_leaves_the_same_session) {
  expectTheSame([&] { return draw(greedyOptions()); });
  load(200);
  expectTheSame([&] { return draw(greedyOptions()); });
  (void)draw(greedyOptions());
  EXPECT_LE(model_->executor->begun_ahead, kTokens - 1) << "every token but the first";
  EXPECT_EQ(0u, model_->executor->dropped) << "none after the last that was asked for";
  EXPECT_EQ(kTokens, statsOf(model_->loaded).position - 5);
  skipIfTooSlow(model_->executor->begun_ahead);
}

// The early step reads the state slot that the previous step writes.
RUNS_ON(kCpu);
TEST_F(RunningAhead, gives_the_same_tokens_where_layers_keep_states) {
  std::vector<RandomFamily> families;
  addStateFamilies(&families);
  uint32_t begun = 0;
  for (const RandomFamily& family : families) {
    if (family.name != "qwen35" && family.name != "falcon-h1") {
      continue;
    }
    SCOPED_TRACE(family.name);
    RandomLlama random = family.model;
    random.tied_output = false;  // otherwise the next token is often the last one again
    const TemporaryModel file(random);
    Options options = makeOptions(&log_);
    options.window_tokens = 64;
    options.set("prefill_batch", 8);
    load(file.path(), options);
    ReplyOptions sampling = greedyOptions();
    sampling.max_tokens = 200;
    expectTheSame([&] { return draw(sampling); });
    (void)draw(sampling);
    begun += model_->executor->begun_ahead;
  }
  skipIfTooSlow(begun);
}

RUNS_ON(kCpu);
TEST_F(RunningAhead, drops_the_step_of_a_token_that_ends_the_reply) {
  const std::string question = "Hello there!";
  bool stopped = false;
  const auto answer = [&] {
    EXPECT_EQ(ORIEL_OK,
              oriel_chat_add(model_->session(), "user", question.data(), question.size()));
    ReplyOptions sampling = greedyOptions();
    sampling.set("ignore_stop", false);
    sampling.max_tokens = 150;
    std::vector<int32_t> ids;
    oriel_generation result = ORIEL_INIT(oriel_generation);
    model_->executor->forgetCounts();
    EXPECT_EQ(ORIEL_OK, oriel_chat_reply(model_->session(), &sampling, keepId, &ids, &result));
    stopped = result.stop_reason == ORIEL_STOP_TOKEN;
    return ids;
  };
  const auto reply = [&] {
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
    return answer();
  };
  const char* const trained = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";
  load(200, trained);  // its replies end
  expectTheSame(reply);
  skipIfTooSlow(model_->executor->begun_ahead);
  if (IsSkipped()) {
    return;
  }
  // On a busy machine some tokens take too long for an early step.
  for (int attempt = 0; attempt < 3 && model_->executor->dropped == 0; ++attempt) {
    (void)reply();
    ASSERT_TRUE(stopped);
  }
  const uint32_t dropped = model_->executor->dropped;
  EXPECT_LE(dropped, 1u);
  // The next message follows the reply as if nothing was started early, also after eviction.
  load(24, trained);
  expectTheSame([&] {
    std::vector<int32_t> ids = reply();
    const std::vector<int32_t> more = answer();
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  });
  skipIfTooSlow(dropped);
}

RUNS_ON(kCpu);
TEST_F(RunningAhead, stops_where_the_app_says_so_or_cancels) {
  load(200);
  struct Stop {
    oriel_session* session;
    bool cancels;
    std::vector<int32_t> ids;
  };
  for (const bool cancels : {false, true}) {
    expectTheSame([&] {
      EXPECT_EQ(ORIEL_OK, oriel_session_reset(model_->session()));
      const std::vector<int32_t> prompt = {11, 42, 7, 99, 3};
      EXPECT_EQ(ORIEL_OK, oriel_session_append(model_->session(), prompt.data(), prompt.size(),
                                               nullptr, nullptr));
      Stop stop = {model_->session(), cancels, {}};
      const auto note = [](const oriel_token_event* event, void* user) {
        Stop* const self = static_cast<Stop*>(user);
        self->ids.push_back(event->id);
        if (self->ids.size() == 10 && self->cancels) {
          oriel_session_cancel(self->session);
        }
        return self->ids.size() == 10 && !self->cancels ? 1 : 0;
      };
      const ReplyOptions sampling = greedyOptions();
      EXPECT_EQ(cancels ? ORIEL_ERROR_CANCELLED : ORIEL_OK,
                oriel_session_generate(model_->session(), &sampling, note, &stop, nullptr));
      EXPECT_EQ(15u, position());
      return stop.ids;
    });
  }
}

RUNS_ON(kCpu);
TEST_F(RunningAhead, does_not_where_the_next_token_is_drawn_or_penalised) {
  model_->executor->ahead = true;
  ReplyOptions sampling = options();
  (void)draw(sampling);
  EXPECT_EQ(0u, model_->executor->asked_ahead);
  sampling.greedy = 1;
  sampling.set("repeat_penalty", 1.1f);
  (void)draw(sampling);
  EXPECT_EQ(0u, model_->executor->asked_ahead);
}

// ---- In a full window ----------------------------------------------------------------------------

RandomLlama smallLlama() { return RandomLlama(); }

struct Case {
  const char* name;
  RandomLlama (*model)();
  oriel_kv_format k;
  oriel_kv_format v;
  uint32_t chunk;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class RunningAheadFull : public RunningAhead, public testing::WithParamInterface<Case> {
 protected:
  static constexpr uint32_t kSinks = 4;
  static constexpr uint32_t kWindow = 12;

  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the CPU executor does not run ahead";
    }
    loadCase(2);
  }
  void loadCase(int32_t eos, uint32_t chunk = GetParam().chunk) {
    RandomLlama model = GetParam().model();
    model.tied_output = false;  // otherwise the next token is often the last one again
    model.eos = static_cast<uint32_t>(eos);
    const TemporaryModel file(model);
    load(file.path(), optionsOf(chunk));
  }
  Options optionsOf(uint32_t chunk) {
    Options options = makeOptions(&log_);
    options.memory_bytes = 64u << 20;
    options.set("sinks", kSinks);
    options.window_tokens = kWindow;
    options.set("prefill_batch", chunk);
    setFormats(&options, GetParam().k, GetParam().v);
    return options;
  }
  uint32_t ring() const {
    return static_cast<uint32_t>(planOf(model_->loaded).count("ring_tokens"));
  }
  /// After a reply that ended when another token was started.
  void expectOneDropped(uint64_t asked) {
    const WatchingExecutor& executor = *model_->executor;
    EXPECT_EQ(executor.ahead ? asked : 0u, executor.asked_ahead);
    if (executor.begun_ahead == executor.asked_ahead) {
      EXPECT_EQ(executor.ahead ? 1u : 0u, executor.dropped);
    }
    dropped_ += executor.dropped;
  }

  uint32_t dropped_ = 0;
};

RUNS_ON(kCpu);
TEST_P(RunningAheadFull, goes_on_however_often_the_ring_wraps) {
  ReplyOptions sampling = greedyOptions();
  sampling.max_tokens = 5 * ring();
  uint32_t begun = 0;
  expectTheSame(
      [&] {
        const std::vector<int32_t> ids = draw(sampling);
        EXPECT_EQ(model_->executor->ahead ? sampling.max_tokens - 1 : 0u,
                  model_->executor->asked_ahead)
            << "every token but the first";
        EXPECT_EQ(0u, model_->executor->dropped);
        begun = model_->executor->begun_ahead;
        return ids;
      },
      4);
  skipIfTooSlow(begun);
}

RUNS_ON(kCpu);
TEST_P(RunningAheadFull, leaves_the_same_session_wherever_in_the_ring_a_step_is_dropped) {
  for (uint32_t phase = 0; phase <= ring(); phase += GetParam().chunk / 2) {
    SCOPED_TRACE(phase);
    expectTheSame(
        [&] {
          begin(kSinks + ring() + phase);
          model_->executor->forgetCounts();
          const std::vector<int32_t> ids = cancelledReply();
          EXPECT_EQ(kSinks + ring() + phase + 3, position());
          expectOneDropped(3);
          return ids;
        },
        4);
  }
  skipIfTooSlow(dropped_);
}

RUNS_ON(kCpu);
TEST_P(RunningAheadFull, drops_the_step_of_a_stop_token) {
  ReplyOptions sampling = greedyOptions();
  sampling.max_tokens = 24;
  begin(50);
  std::vector<int32_t> endless = goOn(sampling);
  endless.resize(sampling.max_tokens);
  // The last token that is new in the text becomes the stop token.
  size_t end = endless.size() - 1;
  while (end > 0 && std::find(endless.begin(), endless.begin() + static_cast<ptrdiff_t>(end),
                              endless[end]) != endless.begin() + static_cast<ptrdiff_t>(end)) {
    --end;
  }
  ASSERT_GT(end, 0u) << "always the same token";
  loadCase(endless[end]);
  sampling.set("ignore_stop", false);
  for (int attempt = 0; attempt < 3 && dropped_ == 0; ++attempt) {
    expectTheSame(
        [&] {
          begin(50);
          const std::vector<int32_t> ids = goOn(sampling);
          EXPECT_EQ(50 + end, position());
          expectOneDropped(end);
          return ids;
        },
        kWindow);
  }
  skipIfTooSlow(dropped_);
}

RUNS_ON(kCpu);
TEST_P(RunningAheadFull, goes_back_as_far_whether_a_step_was_dropped_or_not) {
  const uint32_t chunk = GetParam().chunk;
  expectTheSame([&] {
    begin(50);
    const std::vector<int32_t> ids = cancelledReply();
    EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(model_->session(), 53 - chunk));
    EXPECT_EQ(ORIEL_OK, goBackTo(model_->session(), 53 - chunk + 1));
    append(1);
    return ids;
  });
}

// If the device began a token and then failed, the previous token would lack tokens that it sees.
RUNS_ON(kCpu);
TEST_P(RunningAheadFull, does_not_where_the_ring_has_no_slack) {
  loadCase(2, 1);
  expectTheSame([&] {
    begin(50);
    model_->executor->forgetCounts();
    const std::vector<int32_t> ids = cancelledReply();
    EXPECT_EQ(0u, model_->executor->asked_ahead);
    EXPECT_EQ(ORIEL_OK, goBackTo(model_->session(), 52));
    append(1);
    return ids;
  });
}

INSTANTIATE_TEST_SUITE_P(
    Formats, RunningAheadFull,
    testing::Values(Case{"f16", smallLlama, ORIEL_KV_F16, ORIEL_KV_F16, 2},
                    Case{"k4v4", smallLlama, ORIEL_KV_INT4, ORIEL_KV_INT4, 5},
                    Case{"mixed_k8v4", smallGemma, ORIEL_KV_INT8, ORIEL_KV_INT4,
                         8},  // rings of two lengths
                    Case{"convolved_f16", smallLfm2, ORIEL_KV_F16, ORIEL_KV_F16, 2},
                    Case{"convolved_k8v4", smallLfm2, ORIEL_KV_INT8, ORIEL_KV_INT4, 5}),
    [](const testing::TestParamInfo<Case>& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace oriel_internal::test::test_run_ahead
