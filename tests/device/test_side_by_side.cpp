// Concurrent sessions of one model: each gives the same output as alone, and none delays the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "support/random_families.h"
#include "support/side_by_side.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_side_by_side {
namespace {

const char* const kSchema =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["name", "age"],
        "additionalProperties": false})";

ReplyOptions sampled(uint64_t seed, uint32_t tokens) {
  ReplyOptions options;
  options.temperature = 1.2f;
  options.seed = seed;
  options.max_tokens = tokens;
  return options;
}

// Greedy and sampled, with and without all logits, with every kind of end.
std::vector<Part> differentParts(size_t count) {
  static const char* const stops[] = {"a", "the"};
  std::vector<Part> parts(count);
  for (size_t i = 0; i < count; ++i) {
    Part& part = parts[i];
    part.message = "Tell me a story, number " + std::to_string(i) + ". And make it long, please.";
    part.options = i % 2 == 0 ? greedyOptions(40) : sampled(i, 30 + static_cast<uint32_t>(i));
    part.options.seed = 1 + i;  // otherwise random, and a snapshot stores it
    switch (i % 5) {
      case 1:
        part.options.stop = stops;
        part.options.stop_count = 2;
        part.options.set("min_tokens", 12);
        break;
      case 2:
        part.options.schema = kSchema;
        break;
      case 3:
        part.options.set("top_k", 0);  // all logits are read
        part.options.set("top_p", 1);
        part.options.set("min_p", 0);
        part.window = 48;
        break;
      case 4:
        part.message.clear();
        part.prompt = someIds(37 + i, 500);
        part.options.set("ignore_stop", true);
        part.options.set("top_logprobs", 0);
        break;
      default:
        break;
    }
  }
  return parts;
}

Options severalOptions(uint32_t sessions, uint32_t window = 96, uint32_t chunk = 16) {
  Options options = sessionOptions(nullptr, window, chunk);
  options.sessions = sessions;
  return options;
}

RUNS_ON(kCpu);
TEST(SideBySide, each_says_what_it_says_alone) {
  constexpr uint32_t kSessions = 6;
  Options options = severalOptions(kSessions);
  const uint32_t windows[kSessions] = {0, 0, 0, 48, 0, 0};
  options.set("session_windows", listText(windows));
  options.set("constraints", true);
  const Sessions sessions(kTrained, options, differentParts(kSessions));
  ASSERT_TRUE(sessions.model());
  const std::vector<Outcome> alone = sessions.oneAfterTheOther();
  std::string texts;
  for (const Outcome& outcome : alone) {
    EXPECT_EQ(ORIEL_OK, outcome.status);
    texts += outcome.text;
  }
  EXPECT_GT(texts.size(), 100u);
  const std::vector<Outcome> threads = sessions.onThreads();
  const std::vector<Outcome> call = sessions.byOneCall();
  for (size_t i = 0; i < kSessions; ++i) {
    expectEqual(alone[i], threads[i], i);
    expectEqual(alone[i], call[i], i);
  }
}

// More sessions than a step can have tokens.
RUNS_ON(kCpu);
TEST(SideBySide, more_sessions_than_a_step_takes) {
  constexpr uint32_t kSessions = 5;
  const Sessions sessions(kTrained, severalOptions(kSessions, 96, 2),
                          std::vector<Part>(kSessions, differentParts(1)[0]));
  ASSERT_TRUE(sessions.model());
  const std::vector<Outcome> alone = sessions.oneAfterTheOther();
  const std::vector<Outcome> threads = sessions.onThreads();
  const std::vector<Outcome> call = sessions.byOneCall();
  for (size_t i = 0; i < kSessions; ++i) {
    expectEqual(alone[i], threads[i], i);
    expectEqual(alone[i], call[i], i);
  }
}

std::vector<FamilyParam> families() {
  return onVulkan() ? familyParams({"lfm2", "qwen35"}) : familiesOfEachKind();
}

class SideBySideFamilies : public testing::TestWithParam<FamilyParam> {};

RUNS_ON(kCpu);
TEST_P(SideBySideFamilies, each_says_what_it_says_alone) {
  constexpr uint32_t kSessions = 4;
  const TemporaryModel file(GetParam()->model);
  std::vector<Part> parts(kSessions);
  for (uint32_t i = 0; i < kSessions; ++i) {
    parts[i].prompt = someIds(20 + 9 * i, static_cast<int32_t>(GetParam()->model.n_vocab));
    parts[i].options = i % 2 == 0 ? greedyOptions(24 + i) : sampled(i, 20 + i);
    parts[i].options.set("ignore_stop", true);
    parts[i].options.seed = 1 + i;
  }
  const Sessions sessions(file.path(), severalOptions(kSessions, 40, 8), parts);
  ASSERT_TRUE(sessions.model());
  const std::vector<Outcome> alone = sessions.oneAfterTheOther();
  const std::vector<Outcome> threads = sessions.onThreads();
  const std::vector<Outcome> call = sessions.byOneCall();
  for (size_t i = 0; i < kSessions; ++i) {
    expectEqual(alone[i], threads[i], i);
    expectEqual(alone[i], call[i], i);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SideBySideFamilies, testing::ValuesIn(families()), familyName);

// --- Common steps ----------------------------------------------------------------------------------

/// Counts steps, and can lose the device during one.
class CountingExecutor final : public ForwardingExecutor {
 public:
  explicit CountingExecutor(Executor* inner) : ForwardingExecutor(inner), real_(inner) {}

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    ++(what == StepRun::kBatch ? batches : what == StepRun::kDecode ? singles : others);
    if (lose_in != 0 && --lose_in == 0) {
      lost = true;
    }
    return lost ? Status(ORIEL_ERROR_DEVICE) : ForwardingExecutor::run(what, stop);
  }
  // Also fails after the loss, except at the end of tests.
  Status keptLogits(uint32_t session, const float** values) override {
    return lost ? Status(ORIEL_ERROR_DEVICE) : real_->keptLogits(session, values);
  }
  Status forget(const BufferRef* pieces, size_t count) override {
    return lost ? Status(ORIEL_ERROR_DEVICE) : real_->forget(pieces, count);
  }
  Status copy(const CopyPiece* pieces, size_t count) override { return real_->copy(pieces, count); }

  uint32_t batches = 0;
  uint32_t singles = 0;
  uint32_t others = 0;
  uint32_t lose_in = 0;
  bool lost = false;

 private:
  Executor* const real_;
};

/// The same sessions on an observed executor.
class Watched {
 public:
  Watched(const Options& options, uint32_t count) {
    oriel_model* model = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &model));
    model_.reset(model);
    real_ = model->executor;
    executor = std::make_unique<CountingExecutor>(real_);
    model->executor = executor.get();
    for (uint32_t i = 0; i < count; ++i) {
      oriel_session* session = nullptr;
      EXPECT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session));
      sessions.emplace_back(session);
    }
  }
  ~Watched() {
    executor->lost = false;
    sessions.clear();
    model_->executor = real_;
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  std::unique_ptr<CountingExecutor> executor;
  std::vector<SessionPtr> sessions;

 private:
  ModelPtr model_;
  Executor* real_ = nullptr;
};

oriel_status generateOn(oriel_session* session, uint32_t tokens, oriel_token_fn on_token = nullptr,
                        void* user = nullptr) {
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  return oriel_session_generate(session, &options, on_token, user, nullptr);
}

void onThreads(const std::vector<std::function<void()>>& acts) {
  std::vector<std::thread> threads;
  for (const auto& act : acts) {
    threads.emplace_back(act);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(SideBySide, tokens_of_one_call_are_computed_in_one_step) {
  Watched watched(severalOptions(4), 4);
  std::vector<oriel_reply> replies(4);
  ReplyOptions options = greedyOptions(20);
  options.set("ignore_stop", true);
  const std::vector<int32_t> ids = someIds(20, 500);
  for (size_t i = 0; i < replies.size(); ++i) {
    ASSERT_EQ(ORIEL_OK, oriel_session_append(watched.sessions[i].get(), ids.data(), ids.size(),
                                             nullptr, nullptr));
    replies[i].struct_size = sizeof(oriel_reply);
    replies[i].session = watched.sessions[i].get();
    replies[i].options = &options;
    replies[i].generate = 1;
  }
  watched.executor->singles = watched.executor->others = 0;
  ASSERT_EQ(ORIEL_OK, oriel_reply_many(replies.data(), replies.size()));
  EXPECT_EQ(20u, watched.executor->batches);
  EXPECT_EQ(0u, watched.executor->singles);
  // Two end early, the last one continues alone.
  watched.executor->batches = 0;
  ReplyOptions shorter = options;
  shorter.max_tokens = 5;
  replies[1].options = replies[2].options = replies[3].options = &shorter;
  ASSERT_EQ(ORIEL_OK, oriel_reply_many(replies.data(), replies.size()));
  EXPECT_EQ(5u, watched.executor->batches);
  EXPECT_EQ(15u, watched.executor->singles);
}

// Running sessions wait for each other, independent of thread scheduling.
RUNS_ON(kCpu);
TEST(SideBySide, threads_meet) {
  constexpr uint32_t kTokens = 200;
  Watched watched(severalOptions(2), 2);
  const std::vector<int32_t> ids = someIds(20, 500);
  for (const SessionPtr& session : watched.sessions) {
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr));
  }
  watched.executor->singles = 0;
  onThreads({[&] { EXPECT_EQ(ORIEL_OK, generateOn(watched.sessions[0].get(), kTokens)); },
             [&] { EXPECT_EQ(ORIEL_OK, generateOn(watched.sessions[1].get(), kTokens)); }});
  EXPECT_EQ(2 * kTokens, 2 * watched.executor->batches + watched.executor->singles);
  EXPECT_GT(watched.executor->batches, 0u);
}

// One step at a time, in turn: while one reads a long prompt the other continues.
RUNS_ON(kCpu);
TEST(SideBySide, a_long_prompt_holds_nobody_up) {
  Watched watched(severalOptions(2, 96, 8), 2);
  const std::vector<int32_t> ids = someIds(8, 500);
  ASSERT_EQ(ORIEL_OK, oriel_session_append(watched.sessions[0].get(), ids.data(), ids.size(),
                                           nullptr, nullptr));
  std::atomic<bool> reads{true};
  std::atomic<uint32_t> tokens{0};
  const auto count = [](const oriel_token_event*, void* user) -> int {
    static_cast<std::atomic<uint32_t>*>(user)->fetch_add(1);
    return 0;
  };
  uint32_t before = 0, after = 0;
  onThreads({[&] {
               while (tokens.load() < 4) {
                 std::this_thread::yield();
               }
               const std::vector<int32_t> prompt = someIds(1600, 500);  // 200 batches
               before = tokens.load();
               EXPECT_EQ(ORIEL_OK, oriel_session_append(watched.sessions[1].get(), prompt.data(),
                                                        prompt.size(), nullptr, nullptr));
               after = tokens.load();
               reads = false;
             },
             [&] {
               while (reads.load()) {
                 EXPECT_EQ(ORIEL_OK, generateOn(watched.sessions[0].get(), 8, count, &tokens));
               }
             }});
  EXPECT_GT(after - before, 50u) << "tokens while 200 batches were read";
}

RUNS_ON(kCpu);
TEST(SideBySide, a_cancel_ends_one_reply_and_no_other) {
  constexpr uint32_t kSessions = 4;
  const Sessions sessions(kTrained, severalOptions(kSessions),
                          std::vector<Part>(kSessions, differentParts(1)[0]));
  ASSERT_TRUE(sessions.model());
  const std::vector<Outcome> alone = sessions.oneAfterTheOther();
  struct Cancelling {
    Outcome outcome;
    oriel_session* session;
    static int onToken(const oriel_token_event* event, void* user) {
      Cancelling& self = *static_cast<Cancelling*>(user);
      (void)addToOutcome(event, &self.outcome);
      if (self.outcome.ids.size() == 7) {
        oriel_session_cancel(self.session);
      }
      return 0;
    }
  };
  Cancelling cancelled = {{}, sessions[2]};
  std::vector<Outcome> outcomes(kSessions);
  sessions.each([&](size_t i) {
    sessions.begin(i);
    if (i == 2) {
      cancelled.outcome.status = oriel_chat_reply(sessions[2], &sessions.part(2).options,
                                                  Cancelling::onToken, &cancelled, nullptr);
    } else {
      sessions.reply(i, &outcomes[i]);
      sessions.look(i, &outcomes[i]);
    }
  });
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, cancelled.outcome.status);
  EXPECT_EQ(7u, cancelled.outcome.ids.size());
  for (size_t i : {0u, 1u, 3u}) {
    expectEqual(alone[i], outcomes[i], i);
  }
}

RUNS_ON(kCpu);
TEST(SideBySide, a_lost_device_is_lost_for_all) {
  constexpr uint32_t kSessions = 4;
  for (const bool by_threads : {true, false}) {
    Watched watched(severalOptions(kSessions), kSessions);
    const std::vector<int32_t> ids = someIds(20, 500);
    std::vector<oriel_reply> replies(kSessions);
    ReplyOptions options = greedyOptions(0);
    options.set("ignore_stop", true);
    for (size_t i = 0; i < kSessions; ++i) {
      ASSERT_EQ(ORIEL_OK, oriel_session_append(watched.sessions[i].get(), ids.data(), ids.size(),
                                               nullptr, nullptr));
      replies[i].struct_size = sizeof(oriel_reply);
      replies[i].session = watched.sessions[i].get();
      replies[i].options = &options;
      replies[i].generate = 1;
    }
    watched.executor->lose_in = 10;
    std::vector<oriel_status> statuses(kSessions);
    if (by_threads) {
      std::vector<std::function<void()>> acts;
      for (size_t i = 0; i < kSessions; ++i) {
        acts.emplace_back([&, i] { statuses[i] = generateOn(watched.sessions[i].get(), 0); });
      }
      onThreads(acts);
    } else {
      EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_reply_many(replies.data(), replies.size()));
      for (size_t i = 0; i < kSessions; ++i) {
        statuses[i] = replies[i].status;
      }
    }
    for (size_t i = 0; i < kSessions; ++i) {
      EXPECT_EQ(ORIEL_ERROR_DEVICE, statuses[i]);
      EXPECT_EQ(ORIEL_ERROR_DEVICE, generateOn(watched.sessions[i].get(), 1));
    }
  }
}

// --- Allowed calls ---------------------------------------------------------------------------------

RUNS_ON(kCpu);
TEST(SideBySide, rows_of_an_evaluation_stay_what_they_are_while_others_go_on) {
  constexpr uint32_t kSessions = 2;
  const Sessions sessions(kTrained, severalOptions(kSessions),
                          std::vector<Part>(kSessions, differentParts(1)[0]));
  ASSERT_TRUE(sessions.model());
  const std::vector<int32_t> ids = someIds(40, 500);
  const auto evaluate = [&] {
    std::vector<std::vector<float>> rows;
    EXPECT_EQ(ORIEL_OK, oriel_session_reset(sessions[0]));
    EXPECT_EQ(ORIEL_OK, oriel_session_append(sessions[0], ids.data(), ids.size(), keepRow, &rows));
    return rows;
  };
  const std::vector<std::vector<float>> alone = evaluate();
  std::atomic<bool> goes_on{true};
  std::thread other([&] {
    while (goes_on.load()) {
      Outcome outcome;
      sessions.begin(1);
      sessions.reply(1, &outcome);
      EXPECT_EQ(ORIEL_OK, outcome.status);
    }
  });
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(alone == evaluate());
  }
  goes_on = false;
  other.join();
}

// No session holds the device during a callback.
RUNS_ON(kCpu);
TEST(SideBySide, a_callback_may_wait_for_a_thread_that_uses_another_session) {
  struct Calling {
    oriel_session* other;
    uint32_t calls = 0;
    static int onToken(const oriel_token_event*, void* user) {
      Calling& self = *static_cast<Calling*>(user);
      ++self.calls;
      EXPECT_EQ(ORIEL_ERROR_STATE, generateOn(self.other, 2)) << "not on the thread of the call";
      std::thread([&] { EXPECT_EQ(ORIEL_OK, generateOn(self.other, 2)); }).join();
      return 0;
    }
    static int onLogits(size_t, const float*, size_t, void* user) { return onToken(nullptr, user); }
  };
  Watched watched(severalOptions(2), 2);
  const std::vector<int32_t> ids = someIds(20, 500);
  for (const SessionPtr& session : watched.sessions) {
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(session.get(), ids.data(), ids.size(), nullptr, nullptr));
  }
  Calling calling = {watched.sessions[1].get()};
  EXPECT_EQ(ORIEL_OK, generateOn(watched.sessions[0].get(), 6, Calling::onToken, &calling));
  EXPECT_EQ(6u, calling.calls);
  EXPECT_EQ(ORIEL_OK, oriel_session_append(watched.sessions[0].get(), ids.data(), 5,
                                           Calling::onLogits, &calling));
  EXPECT_EQ(11u, calling.calls);
}

RUNS_ON(kCpu);
TEST(SideBySide, many_replies_are_refused_as_a_whole) {
  constexpr uint32_t kSessions = 2;
  const Sessions sessions(kTrained, severalOptions(kSessions),
                          std::vector<Part>(kSessions, differentParts(1)[0]));
  ASSERT_TRUE(sessions.model());
  EXPECT_EQ(ORIEL_OK, oriel_reply_many(nullptr, 0));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_reply_many(nullptr, 1));
  oriel_reply replies[2] = {};
  replies[0].struct_size = replies[1].struct_size = sizeof(oriel_reply);
  const ReplyOptions few = greedyOptions(4);  // must end at the limit, not at a stop token
  replies[0].options = replies[1].options = &few;
  replies[0].session = replies[1].session = sessions[0];
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_reply_many(replies, 2)) << "one session twice";
  replies[1].session = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_reply_many(replies, 2));
  replies[1].session = sessions[1];
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_reply_many(replies, 2)) << "nothing to answer";
  EXPECT_EQ(ORIEL_ERROR_STATE, replies[1].status);
  // A reply that cannot begin does not affect the other.
  sessions.begin(1);
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_reply_many(replies, 2));
  EXPECT_EQ(ORIEL_ERROR_STATE, replies[0].status);
  EXPECT_EQ(ORIEL_OK, replies[1].status);
}

RUNS_ON(kCpu);
TEST(SideBySide, no_other_call_comes_between_many_replies) {
  constexpr uint32_t kSessions = 2;
  const Sessions sessions(kTrained, severalOptions(kSessions),
                          std::vector<Part>(kSessions, differentParts(1)[0]));
  ASSERT_TRUE(sessions.model());
  struct Calling {
    const Sessions& sessions;
    oriel_reply* replies;
  };
  oriel_reply replies[2] = {};
  Calling calling = {sessions, replies};
  for (size_t i = 0; i < kSessions; ++i) {
    sessions.begin(i);
    replies[i].struct_size = sizeof(oriel_reply);
    replies[i].session = sessions[i];
    replies[i].options = &sessions.part(i).options;
    replies[i].user = &calling;
    replies[i].on_token = [](const oriel_token_event*, void* user) -> int {
      const Calling& self = *static_cast<Calling*>(user);
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self.sessions[0]));
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_reset(self.sessions[1]));
      oriel_reply again[2] = {self.replies[0], self.replies[1]};
      EXPECT_EQ(ORIEL_ERROR_STATE, oriel_reply_many(again, 2));
      return 0;
    };
  }
  EXPECT_EQ(ORIEL_OK, oriel_reply_many(replies, 2));
}

// Replies that run until cancelled, with their token counts.
class Endless {
 public:
  explicit Endless(const Sessions& sessions) : sessions_(sessions) {
    for (size_t i = 0; i < 2; ++i) {
      sessions.begin(i);
      replies_[i].struct_size = sizeof(oriel_reply);
      replies_[i].session = sessions[i];
      replies_[i].options = &sessions.part(i).options;
      replies_[i].user = &counts_[i];
      replies_[i].on_token = [](const oriel_token_event*, void* user) {
        ++*static_cast<std::atomic<uint32_t>*>(user);
        return 0;
      };
    }
    thread_ = std::thread([this] { (void)oriel_reply_many(replies_, 2); });
  }
  ~Endless() { end(); }

  void cancel(size_t i) { oriel_session_cancel(sessions_[i]); }
  void end() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  uint32_t count(size_t i) const { return counts_[i]; }
  oriel_status status(size_t i) const { return replies_[i].status; }
  void waitForTokens(size_t i, uint32_t count) const {
    while (counts_[i] < count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  const Sessions& sessions_;
  oriel_reply replies_[2] = {};
  std::atomic<uint32_t> counts_[2] = {};
  std::thread thread_;
};

RUNS_ON(kCpu);
TEST(SideBySide, of_replies_that_rest_any_can_be_cancelled) {
  std::vector<Part> parts(2, differentParts(1)[0]);
  for (Part& part : parts) {
    part.options.max_tokens = 0;
    part.options.set("ignore_stop", true);
  }
  const Sessions sessions(kTrained, severalOptions(2), parts);
  ASSERT_TRUE(sessions.model());
  for (size_t i = 0; i < 2; ++i) {
    Endless replies(sessions);
    replies.waitForTokens(1, 3);
    ASSERT_EQ(ORIEL_OK, oriel_pause(sessions.model()));
    const uint32_t one = replies.count(i);
    const uint32_t other = replies.count(1 - i);
    replies.cancel(i);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    EXPECT_EQ(other, replies.count(1 - i));
    ASSERT_EQ(ORIEL_OK, oriel_resume(sessions.model(), nullptr, nullptr));
    replies.waitForTokens(1 - i, other + 10);
    EXPECT_EQ(one, replies.count(i)) << "says nothing more";
    ASSERT_EQ(ORIEL_OK, oriel_pause(sessions.model()));
    replies.cancel(1 - i);
    replies.end();  // all are cancelled: none needs resuming
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, replies.status(0));
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, replies.status(1));
    ASSERT_EQ(ORIEL_OK, oriel_resume(sessions.model(), nullptr, nullptr));
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_side_by_side
