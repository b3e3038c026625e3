// A device lost during any operation: one line, no waiting, and the conversation is recoverable.
#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/files.h"
#include "support/random_families.h"
#include "support/recovery.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_lost_device {
namespace {

const std::vector<int32_t> kPrompt = someIds(50, 500);

struct Place {
  const char* name;
  Work in;
  uint32_t after;
  /// The operation during which it happens; the session has read the prompt.
  oriel_status (*act)(const Loaded&);
  uint64_t tokens;  ///< committed by then
};

oriel_status draw(const Loaded& loaded, bool greedy) {
  ReplyOptions options = greedy ? greedyOptions(9) : wildOptions(9, 1);
  options.set("ignore_stop", true);
  return oriel_session_generate(loaded.session.get(), &options, nullptr, nullptr, nullptr);
}

const Place kPlaces[] = {
    {"prefill", Work::kRun, 2, [](const Loaded& l) { return append(l, someIds(40, 400)); }, 66},
    {"chat", Work::kRun, 1,
     [](const Loaded& l) { return add(l, "user", "Hello there, how are you?"); }, 50},
    {"decode", Work::kRun, 4, [](const Loaded& l) { return draw(l, false); }, 53},
    {"ahead", Work::kRunAhead, 4, [](const Loaded& l) { return draw(l, true); }, 53},
    {"logits", Work::kLogits, 1,
     [](const Loaded& l) {
       const float* logits = nullptr;
       size_t count = 0;
       return oriel_session_logits(l.session.get(), &logits, &count);
     },
     50},
    {"evaluate", Work::kRun, 1,
     [](const Loaded& l) {
       const std::vector<int32_t> ids = someIds(20, 400);
       return oriel_session_append(
           l.session.get(), ids.data(), ids.size(),
           [](size_t, const float*, size_t, void*) { return 0; }, nullptr);
     },
     50},
    {"save", Work::kRead, 3,
     [](const Loaded& l) {
       std::vector<uint8_t> room(1 << 22);
       size_t needed = 0;
       return oriel_snapshot_save(l.session.get(), room.data(), room.size(), &needed);
     },
     50},
    {"save_file", Work::kRead, 1,
     [](const Loaded& l) {
       return oriel_session_save(l.session.get(), (testing::TempDir() + "oriel-lost.bin").c_str(),
                                 0);
     },
     50},
    {"restore", Work::kWrite, 4,
     [](const Loaded& l) {
       std::vector<uint8_t> room(1 << 22);
       size_t needed = 0;
       EXPECT_EQ(ORIEL_OK, oriel_snapshot_save(l.session.get(), room.data(), room.size(), &needed));
       return oriel_snapshot_restore(l.session.get(), room.data(), needed, 0, nullptr);
     },
     50},
    {"reset", Work::kForget, 1,
     [](const Loaded& l) { return oriel_session_reset(l.session.get()); }, 50},
};

class LostDevice : public testing::TestWithParam<Place> {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "ahead", "restore", "prefill");
TEST_P(LostDevice, is_one_line_and_every_call_fails_at_once_but_the_tokens_are_there) {
  const Place& place = GetParam();
  for (const oriel_status how : {ORIEL_ERROR_DEVICE, ORIEL_ERROR_TIMEOUT}) {
    CapturedLog log;
    WatchedModel<LosingExecutor> model(kRandom, sessionOptions(&log, 100, 16));
    ASSERT_NE(nullptr, model.session()) << log.errors();
    const Loaded& loaded = model.loaded;
    oriel_session* const session = model.session();
    LosingExecutor& executor = *model.executor;
    executor.log = log.log();
    ASSERT_EQ(ORIEL_OK, append(loaded, kPrompt));
    executor.lose_in = place.in;
    executor.after = place.after;
    executor.how = how;
    EXPECT_EQ(how, place.act(loaded));
    ASSERT_TRUE(executor.isLost());
    EXPECT_EQ(1u, errorLines(log)) << log.errors();
    executor.asked_since = 0;

    const int32_t id = 1;
    const float* logits = nullptr;
    size_t needed = 0;
    std::vector<uint8_t> room(1 << 22);
    const auto ignore = [](size_t, const float*, size_t, void*) { return 0; };
    for (const oriel_status status :
         {oriel_session_append(session, &id, 1, nullptr, nullptr),
          oriel_session_append_text(session, "x", 1, 0), goBackTo(session, 3),
          oriel_session_reset(session), oriel_session_logits(session, &logits, &needed),
          oriel_session_append(session, &id, 1, ignore, nullptr), draw(loaded, true),
          draw(loaded, false), add(loaded, "user", "Hello"),
          oriel_chat_reply(session, nullptr, nullptr, nullptr, nullptr),
          oriel_snapshot_save(session, room.data(), room.size(), &needed),
          oriel_snapshot_save(session, nullptr, 0, &needed),
          oriel_session_save(session, "/nowhere/at/all", 0), restoreFrom(session, room),
          oriel_session_restore(session, "/nowhere/at/all", 0, nullptr)}) {
      EXPECT_EQ(ORIEL_ERROR_DEVICE, status);
    }
    EXPECT_EQ(0u, executor.asked_since) << "nothing is asked of a lost device";
    EXPECT_EQ(1u, errorLines(log)) << log.errors();

    const oriel_stats stats = statsOf(loaded);
    EXPECT_EQ(place.tokens, stats.position);
    EXPECT_EQ(stats.position, describe(session)["position"]);
    std::vector<int32_t> ids(stats.position);
    EXPECT_EQ(ORIEL_OK, oriel_session_get_tokens(session, 0, ids.data(), ids.size(), &needed));
    ASSERT_EQ(ids.size(), needed);
    EXPECT_TRUE(std::equal(kPrompt.begin(), kPrompt.end(), ids.begin()));

    // On the CPU it continues.
    const Loaded cpu = load(kRandom, cpuOptions(&log, 100, 16));
    EXPECT_EQ(ORIEL_OK, append(cpu, ids));
    EXPECT_EQ(3u, greedy(cpu, 3).size());

    model.loaded.session.reset();
    model.loaded.session = newSession(loaded.model);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, append(loaded, kPrompt)) << "it is lost as the one before it";
    EXPECT_EQ(1u, errorLines(log)) << log.errors();
    model.loaded.session.reset();
    executor.mend();
  }
}

INSTANTIATE_TEST_SUITE_P(While, LostDevice, testing::ValuesIn(kPlaces),
                         [](const testing::TestParamInfo<Place>& test) { return test.param.name; });

TEST(LostDevice, leaves_what_was_said_to_go_on_from) {
  CapturedLog log;
  Options options = sessionOptions(&log, 300, 16);
  options.set("transcript", 16384);
  WatchedModel<LosingExecutor> model(kTrained, options);
  ASSERT_NE(nullptr, model.session()) << log.errors();
  const Loaded& loaded = model.loaded;
  LosingExecutor& executor = *model.executor;
  executor.log = log.log();
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "My name is Ada."));
  const Heard said = listen(oriel_chat_reply, loaded, greedyOptions(20));
  ASSERT_EQ(ORIEL_OK, said.status);
  executor.lose_in = Work::kRun;
  executor.after = 1;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, add(loaded, "user", "What is my name?"));
  ASSERT_TRUE(executor.isLost());
  executor.asked_since = 0;

  std::vector<char> json(16384);
  size_t needed = 0;
  ASSERT_EQ(ORIEL_OK, oriel_transcript_export(model.session(), json.data(), json.size(), &needed));
  const std::string text(json.data(), needed - 1);
  EXPECT_NE(std::string::npos, text.find("My name is Ada.")) << text;
  EXPECT_NE(std::string::npos, text.find("assistant")) << text;
  EXPECT_EQ(std::string::npos, text.find("What is my name?")) << "it was not read: " << text;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_transcript_import(model.session(), text.data(), text.size()));
  EXPECT_EQ(0u, executor.asked_since);

  Options on_cpu = cpuOptions(&log, 300, 16);
  on_cpu.set("transcript", 16384);
  const Loaded next = load(kTrained, on_cpu);
  ASSERT_EQ(ORIEL_OK, oriel_transcript_import(next.session.get(), text.data(), text.size()));
  ASSERT_EQ(ORIEL_OK, add(next, "user", "What is my name?"));
  const Loaded whole = load(kTrained, on_cpu);
  ASSERT_EQ(ORIEL_OK, add(whole, "user", "My name is Ada."));
  ASSERT_EQ(said.text, listen(oriel_chat_reply, whole, greedyOptions(20)).text);
  ASSERT_EQ(ORIEL_OK, add(whole, "user", "What is my name?"));
  EXPECT_EQ(statsOf(whole).position, statsOf(next).position);
  EXPECT_EQ(listen(oriel_chat_reply, whole, greedyOptions(20)).text,
            listen(oriel_chat_reply, next, greedyOptions(20)).text);
  model.loaded.session.reset();
  executor.mend();
}

}  // namespace
}  // namespace oriel_internal::test::test_lost_device

namespace oriel_internal::test::test_recovery {

// A session with a lost device continues as if nothing had happened: oriel_session_recover.

namespace {

RUNS_ON(kCpu);
TEST(Recovery, goes_on_to_the_bit_whatever_the_layers_remember) {
  for (const RandomFamily& family : randomFamilies()) {
    SCOPED_TRACE(family.name);
    const char* const few[] = {"qwen35", "gemma2", "lfm2", "deepseek2", "qwen3moe"};
    const size_t place =
        static_cast<size_t>(std::find(std::begin(few), std::end(few), family.name) - few);
    if (onVulkan() && (place == std::size(few) || isOthersTurn(place, false))) {
      continue;
    }
    const TemporaryModel file(family.model);
    CapturedLog log;
    const Twins twins(file.path(), recoveryOptions(&log, 120, 8));
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([](const SessionPtr& session) {
      ASSERT_EQ(ORIEL_OK, append(session, someIds(21, 250)));
      ASSERT_EQ(5u, generateIds(session, 5).size());
      ASSERT_EQ(ORIEL_OK, append(session, someIds(11, 250)));
      ASSERT_EQ(5u, generateIds(session, 5, 7).size());
    });
    const_cast<LosableModel&>(twins.losing).lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, someIds(3, 250)));
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(1u, result.exact);
    EXPECT_EQ(1u, result.same_device);
    EXPECT_EQ(0u, result.tokens_dropped);
    EXPECT_EQ(42u, result.tokens_held);
    EXPECT_EQ(42u, result.tokens_read);
    expectWithinPlan(twins.losing.model);
    twins.expectSame();
  }
}

RUNS_ON(kCpu);
TEST(Recovery, low_bit_caches_are_rounded_alike) {
  size_t number = 0;
  for (const oriel_kv_format format : {ORIEL_KV_INT4, ORIEL_KV_INT8}) {
    if (isOthersTurn(number++, false)) {
      continue;
    }
    Options options = recoveryOptions(nullptr);
    setFormats(&options, format);
    const Parted parted(options);
    EXPECT_EQ(1u, recoveredOf(parted.twins->mine.get()).exact);
    parted.twins->expectSame();
  }
}

RUNS_ON(kCpu);
TEST(Recovery, a_cut_reply_keeps_what_was_shown) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead);
    if (ahead && onVulkan()) {
      continue;  // the test executor for early steps only supports other devices
    }
    CapturedLog log;
    Twins twins(kTrained, recoveryOptions(&log));
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([](const SessionPtr& session) {
      ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story about a dog."));
    });
    // The opening of the reply is a step, too.
    twins.losing.lose(ahead ? Work::kRunAhead : Work::kRun, ahead ? 5 : 8);
    const Said cut = speak(twins.mine, oriel_chat_reply, 40);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, cut.status);
    ASSERT_FALSE(cut.ids.empty());
    const std::string before = transcriptOf(twins.mine);
    const Said whole = speak(twins.other, oriel_chat_reply, static_cast<uint32_t>(cut.ids.size()));
    EXPECT_EQ(whole.ids, cut.ids);
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(1u, result.exact);
    EXPECT_EQ(positionOf(twins.other), result.tokens_held);
    EXPECT_EQ(transcriptOf(twins.other), transcriptOf(twins.mine));
    EXPECT_EQ(before, transcriptOf(twins.mine));
    twins.expectSame(10);
    // The turn is closed as after a complete reply.
    twins.both([](const SessionPtr& session) { ASSERT_EQ(ORIEL_OK, say(session, "Go on.")); });
    EXPECT_EQ(speak(twins.other, oriel_chat_reply, 10).text,
              speak(twins.mine, oriel_chat_reply, 10).text);
  }
}

RUNS_ON(kCpu);
TEST(Recovery, once_the_window_has_moved_on_the_transcript_is_read_through_it) {
  for (const uint32_t sinks : {0u, 4u, 24u}) {
    SCOPED_TRACE(sinks);
    CapturedLog log;
    Options options = recoveryOptions(&log, 48, 8);
    options.set("sinks", sinks);
    Twins twins(kTrained, options);
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([](const SessionPtr& session) {
      for (const char* const text : {"My name is Ada.", "Tell me a story about a dog and a cat.",
                                     "What is my name?", "And another one.", "Thank you!"}) {
        ASSERT_EQ(ORIEL_OK, say(session, text));
        ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 16).status);
      }
    });
    twins.losing.lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "What is my name?"));
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(0u, result.exact);
    EXPECT_EQ(0u, result.tokens_dropped);
    EXPECT_EQ(positionOf(twins.other), result.tokens_read);
    twins.expectSame();
  }
}

// In each part of a message: its opening, text and closing.
RUNS_ON(kCpu);
TEST(Recovery, the_first_token_that_is_held_may_stand_anywhere) {
  const uint32_t steps = allCases() ? 1 : !onVulkan() ? 5 : 7;
  for (uint32_t tokens = 1; tokens <= 28; tokens += steps) {
    SCOPED_TRACE(tokens);
    CapturedLog log;
    Twins twins(kTrained, recoveryOptions(&log, 48, 8));
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([&](const SessionPtr& session) {
      for (const uint32_t n : {6u, 4u, 30u + tokens}) {
        ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story."));
        ReplyOptions options = greedyOptions(n);
        options.set("ignore_stop", true);
        ASSERT_EQ(n, speak(session, oriel_chat_reply, options).ids.size());
      }
    });
    twins.losing.lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "What is my name?"));
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(0u, result.tokens_dropped);
    EXPECT_EQ(positionOf(twins.other), result.tokens_read);
    twins.expectSame(4);
  }
}

RUNS_ON(kCpu);
TEST(Recovery, without_a_transcript_what_is_held_is_read) {
  CapturedLog log;
  Twins twins(kTrained, recoveryOptions(&log, 48, 8));
  ASSERT_TRUE(twins.ok()) << log.errors();
  twins.both(
      [](const SessionPtr& session) { ASSERT_EQ(ORIEL_OK, append(session, someIds(150, 400))); });
  const uint64_t position = positionOf(twins.mine);
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, {5}));
  const oriel_recovered result = recoveredOf(twins.mine.get());
  EXPECT_EQ(0u, result.exact);
  EXPECT_EQ(position, positionOf(twins.mine));
  EXPECT_EQ(position, result.tokens_held + result.tokens_dropped);
  EXPECT_LE(52u, result.tokens_held);
  EXPECT_EQ(10u, generateIds(twins.mine, 10).size());
}

RUNS_ON(kCpu);
TEST(Recovery, a_transcript_that_lacks_something_is_not_read) {
  std::string long_text;
  while (long_text.size() < 1000) {
    long_text += " and then";
  }
  for (const bool dropped : {true, false}) {
    SCOPED_TRACE(dropped);
    CapturedLog log;
    Options options = recoveryOptions(&log, 48, 8);
    options.set("transcript", dropped ? 4096 : 32768);
    Twins twins(kTrained, options);
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([&](const SessionPtr& session) {
      for (uint32_t i = 0; i < 5; ++i) {
        const std::string more = dropped ? long_text : "";
        ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story about a dog and a cat." + more));
        ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 16).status);
        ASSERT_EQ(ORIEL_OK, dropped ? ORIEL_OK : append(session, someIds(5, 400)));
      }
    });
    const std::string said = transcriptOf(twins.mine);
    const uint64_t position = positionOf(twins.mine);
    twins.losing.lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, {5}));
    const oriel_recovered result = recoveredOf(twins.mine.get());
    EXPECT_EQ(0u, result.exact);
    EXPECT_EQ(position, result.tokens_held + result.tokens_dropped);
    EXPECT_EQ(position, positionOf(twins.mine));
    EXPECT_EQ(turnsOf(twins.other), turnsOf(twins.mine));
    EXPECT_EQ(said, transcriptOf(twins.mine));
    EXPECT_EQ(10u, generateIds(twins.mine, 10).size());
  }
}

RUNS_ON(kCpu);
TEST(Recovery, turns_marks_and_rewinds_are_there_again) {
  CapturedLog log;
  Twins twins(kTrained, recoveryOptions(&log));
  ASSERT_TRUE(twins.ok()) << log.errors();
  twins.both([](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, say(session, "My name is Ada."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
    ASSERT_EQ(ORIEL_OK, oriel_session_mark(session.get(), "here"));
    ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12, 3).status);
  });
  twins.losing.lose(Work::kLogits, 1, ORIEL_ERROR_TIMEOUT);
  const float* logits = nullptr;
  EXPECT_EQ(ORIEL_ERROR_TIMEOUT, oriel_session_logits(twins.mine.get(), &logits, nullptr));
  EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
  EXPECT_EQ(transcriptOf(twins.other), transcriptOf(twins.mine));
  EXPECT_EQ(logitsOf(twins.other), logitsOf(twins.mine));
  twins.both([](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, oriel_session_go_back(session.get(), ORIEL_BACK_TO_MARK, 0, "here", 0));
    ASSERT_EQ(ORIEL_OK, say(session, "What is my name?"));
  });
  twins.expectSame();
}

RUNS_ON(kCpu);
TEST(Recovery, each_session_is_recovered_behind_the_one_prefix) {
  CapturedLog log;
  Options options = recoveryOptions(&log, 160, 16);
  options.sessions = 3;
  const std::string prompt = "You are a kind assistant.";
  options.system_prompt = prompt.data();
  Twins twins(kTrained, options);
  ASSERT_TRUE(twins.ok()) << log.errors();
  const SessionPtr mine = newSession(twins.losing.model);
  const SessionPtr other = newSession(twins.model);
  const auto talk = [](const SessionPtr& session, const char* text) {
    ASSERT_EQ(ORIEL_OK, say(session, text));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 10).status);
  };
  twins.both([&](const SessionPtr& session) { talk(session, "My name is Ada."); });
  talk(mine, "Tell me a story.");
  talk(other, "Tell me a story.");
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "Hello"));
  const SessionPtr third = newSession(twins.losing.model);
  EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(mine, "Hello")) << "until it is recovered itself";
  twins.expectSame();
  EXPECT_EQ(1u, recoveredOf(mine.get()).exact);
  EXPECT_EQ(logitsOf(other), logitsOf(mine));
  EXPECT_EQ(generateIds(other, 10), generateIds(mine, 10));
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(third, "Hello"));
  EXPECT_EQ(positionOf(third), recoveredOf(third.get()).tokens_held);
  const SessionPtr fresh = newSession(twins.model);
  ASSERT_EQ(ORIEL_OK, say(third, "Hello"));
  ASSERT_EQ(ORIEL_OK, say(fresh, "Hello"));
  EXPECT_EQ(logitsOf(fresh), logitsOf(third));
}

TEST(Recovery, goes_on_on_the_cpu) {
  const Parted parted;
  const Twins& twins = *parted.twins;
  const oriel_recovered result = recoveredOf(twins.mine.get(), ORIEL_OK, "cpu");
  EXPECT_EQ(1u, result.on_cpu);
  EXPECT_STREQ("CPU", result.device_name);
  EXPECT_EQ(!onVulkan() ? 1u : 0u, result.same_device);
  EXPECT_EQ("CPU", describe(twins.losing.model)["device"]);
  parted.expectSameAnswer();
}

RUNS_ON(kCpu);
TEST(Recovery, a_failure_in_the_middle_leaves_all_to_be_done_again) {
  const Parted parted;
  Twins& twins = *parted.twins;
  // Lost again during the rebuild.
  struct Losing {
    Twins* twins;
    Work work;
    uint32_t after;
    bool stop;
  };
  const auto watch = [](uint64_t done, uint64_t, void* user) {
    Losing& self = *static_cast<Losing*>(user);
    if (self.twins->losing.front == nullptr && done != 0) {
      self.twins->losing.watch();
      self.twins->losing.lose(self.work, self.after);
    }
    return self.stop ? 1 : 0;
  };
  const auto recover = [&](Losing* losing) {  // one device, so that no other is tried
    return oriel_session_recover(twins.mine.get(), "cpu", 0, watch, losing, nullptr);
  };
  for (const auto& [work, after] : {std::pair(Work::kForget, 1u), std::pair(Work::kRun, 1u),
                                    std::pair(Work::kRun, 3u), std::pair(Work::kRun, 9u)}) {
    SCOPED_TRACE(after);
    Losing losing = {&twins, work, after, false};
    const std::string said = transcriptOf(twins.mine);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, recover(&losing));
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "Hello?"));
    EXPECT_EQ(said, transcriptOf(twins.mine));
    EXPECT_EQ(positionOf(twins.other), positionOf(twins.mine));
  }
  Losing stopped = {&twins, Work::kNothing, 1, true};
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, recover(&stopped));
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "Hello?"));
  EXPECT_EQ(1u, recoveredOf(twins.mine.get(), ORIEL_OK, "cpu").exact);
  if (!onVulkan()) {
    twins.expectSame();
  }
  EXPECT_EQ(0u, recoveredOf(twins.mine.get()).tokens_read) << "nothing is lost";
}

RUNS_ON(kCpu);
TEST(Recovery, in_batches_is_the_same_but_for_rounding) {
  const Parted parted;
  EXPECT_EQ(
      0u, recoveredOf(parted.twins->mine.get(), ORIEL_OK, nullptr, ORIEL_RECOVER_IN_BATCHES).exact);
  parted.expectSameAnswer();
}

}  // namespace
}  // namespace oriel_internal::test::test_recovery

namespace oriel_internal::test::test_recovery_calls {

// Calls that may run concurrently with oriel_session_recover, and its errors otherwise.

namespace {

namespace fs = std::filesystem;

class RecoveryCalls : public ScratchFolder {
 protected:
  void SetUp() override { open(kTrained); }
  void open(const std::string& path) {
    Options options = sessionOptions(&log, 200, 16);
    options.set("transcript", 16384);
    options.sessions = 2;
    losing = std::make_unique<LosableModel>(path, options);
    losing->front->log = log.log();
    session = makeSession();
  }
  void TearDown() override {
    other.reset();
    session.reset();
    losing.reset();
  }
  SessionPtr makeSession() const {
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(losing->model.get(), nullptr, &made));
    return SessionPtr(made);
  }
  oriel_status say(const char* text) const {
    return oriel_chat_add(session.get(), "user", text, std::strlen(text));
  }
  oriel_status recover() const {
    return oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, nullptr);
  }
  std::vector<float> logits() const {
    const float* values = nullptr;
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK, oriel_session_logits(session.get(), &values, &count));
    return {values, values + count};
  }
  void loseIt() const {
    losing->lose(Work::kRun, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  }

  CapturedLog log;
  std::unique_ptr<LosableModel> losing;
  SessionPtr session;
  SessionPtr other;
};

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, what_is_no_request_is_refused) {
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(nullptr, nullptr, 0, nullptr, nullptr, nullptr));
  for (const char* device : {"none", "cpu:1", "vulkan:x", ""}) {
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
              oriel_session_recover(session.get(), device, 0, nullptr, nullptr, nullptr))
        << device;
  }
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(session.get(), nullptr, 2, nullptr, nullptr, nullptr));
  oriel_recovered result = {};
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result));
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_session_that_is_not_lost_is_left_alone) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  oriel_recovered result = ORIEL_INIT(oriel_recovered);
  ASSERT_EQ(ORIEL_OK, oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result));
  EXPECT_EQ(0u, result.tokens_read);
  EXPECT_EQ(1u, result.exact);
  EXPECT_EQ(1u, result.same_device);
  EXPECT_LT(0u, result.tokens_held);
  EXPECT_EQ(before, logits());
  EXPECT_NE(nullptr, losing->front) << "the device is the one that it was";
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, not_from_inside_a_callback_of_the_models) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  other = makeSession();
  struct Asked {
    oriel_session* sessions[2];
    oriel_status statuses[2];
  } asked = {{session.get(), other.get()}, {}};
  ReplyOptions options = greedyOptions(2);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(
                          session.get(), &options,
                          [](const oriel_token_event*, void* user) {
                            Asked& self = *static_cast<Asked*>(user);
                            for (uint32_t i = 0; i < 2; ++i) {
                              self.statuses[i] = oriel_session_recover(self.sessions[i], nullptr, 0,
                                                                       nullptr, nullptr, nullptr);
                            }
                            return 0;
                          },
                          &asked, nullptr));
  EXPECT_EQ(ORIEL_ERROR_STATE, asked.statuses[0]);
  EXPECT_EQ(ORIEL_ERROR_STATE, asked.statuses[1]);
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_loss_that_another_call_met_counts) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  losing->lose(Work::kForget, 1);
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_create(losing->model.get(), nullptr, &made));
  ASSERT_EQ(ORIEL_OK, recover());
  EXPECT_EQ(before, logits());
  other = makeSession();
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, the_models_file_may_be_gone_and_come_back) {
  const fs::path path = folder_ / "model.gguf";
  fs::copy_file(kTrained, path);
  session.reset();
  open(path.string());
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  fs::rename(path, path.string() + ".away");
  loseIt();
  log.lines.clear();
  EXPECT_EQ(ORIEL_ERROR_IO, recover());
  EXPECT_EQ(1u, errorLines(log)) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  other = makeSession();
  EXPECT_EQ(ORIEL_ERROR_IO,
            oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
  oriel_stats stats = ORIEL_STATS_INIT;
  ASSERT_EQ(ORIEL_OK, oriel_session_get_stats(session.get(), &stats));
  EXPECT_EQ(0u, stats.device_bytes);
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
            oriel_transcript_export(session.get(), nullptr, 0, &needed));
  fs::copy_file(kRandom, path);
  EXPECT_EQ(ORIEL_ERROR_IO, recover()) << "it is another";
  fs::rename(path.string() + ".away", path);
  ASSERT_EQ(ORIEL_OK, recover()) << log.errors();
  EXPECT_EQ(before, logits());
  EXPECT_EQ(ORIEL_OK, oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, what_was_trimmed_is_taken_again) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  for (const oriel_trim_level level :
       {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE, ORIEL_TRIM_ALL}) {
    SCOPED_TRACE(level);
    const std::string where = folder_.string();
    ASSERT_EQ(ORIEL_OK, oriel_trim(losing->model.get(), level,
                                   level == ORIEL_TRIM_CACHE ? where.c_str() : nullptr));
    losing->lose(Work::kTakeAgain, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_resume(losing->model.get(), nullptr, nullptr));
    EXPECT_EQ(ORIEL_ERROR_STATE, say("Hello?"));
    oriel_recovered result = ORIEL_INIT(oriel_recovered);
    ASSERT_EQ(ORIEL_OK, oriel_session_recover(session.get(), nullptr, 0, nullptr, nullptr, &result))
        << log.errors();
    EXPECT_EQ(level == ORIEL_TRIM_CACHE, result.tokens_read == 0) << "the cache was in a file";
    EXPECT_EQ(before, logits());
    EXPECT_EQ("none", describe(losing->model)["resident"]["level"]);
    losing->watch()->log = log.log();
  }
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_pause_ends) {
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> before = logits();
  loseIt();
  ASSERT_EQ(ORIEL_OK, oriel_pause(losing->model.get()));
  ASSERT_EQ(ORIEL_OK, recover());
  EXPECT_EQ(before, logits());
}

TEST_F(RecoveryCalls, where_no_session_is_left_a_new_one_recovers_the_device) {
  session.reset();
  losing->lose(Work::kForget, 1);
  oriel_session* made = nullptr;
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_create(losing->model.get(), nullptr, &made));
  EXPECT_EQ(nullptr, made);
  session = makeSession();
  other = makeSession();
  ASSERT_TRUE(session != nullptr && other != nullptr) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
  EXPECT_EQ(0u, losing->front->asked_since);
  EXPECT_EQ(ORIEL_OK, recover());
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<float> after = logits();
  session.reset();
  EXPECT_EQ(ORIEL_OK, oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr));
  session = makeSession();
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  EXPECT_EQ(after, logits());
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, a_trimmed_model_without_a_session_gets_one_that_recovers_the_device) {
  for (const oriel_trim_level level :
       {ORIEL_TRIM_SCRATCH, ORIEL_TRIM_WEIGHTS, ORIEL_TRIM_CACHE, ORIEL_TRIM_ALL}) {
    SCOPED_TRACE(level);
    ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
    const std::vector<float> before = logits();
    const std::string where = folder_.string();
    ASSERT_EQ(ORIEL_OK, oriel_trim(losing->model.get(), level,
                                   level == ORIEL_TRIM_CACHE ? where.c_str() : nullptr));
    session.reset();
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_create(losing->model.get(), nullptr, &made));
    losing->lose(Work::kTakeAgain, 1);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_resume(losing->model.get(), nullptr, nullptr));
    session = makeSession();
    ASSERT_NE(nullptr, session) << log.errors();
    EXPECT_EQ(ORIEL_ERROR_DEVICE, say("Hello?"));
    ASSERT_EQ(ORIEL_OK, recover()) << log.errors();
    other = makeSession();
    ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
    EXPECT_EQ(before, logits());
    other.reset();
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(session.get()));
    losing->watch()->log = log.log();
  }
}

RUNS_ON(kCpu);
TEST_F(RecoveryCalls, sessions_recover_at_the_same_time) {
  other = makeSession();
  ASSERT_EQ(ORIEL_OK, say("My name is Ada."));
  const std::vector<int32_t> ids = someIds(40, 400);
  ASSERT_EQ(ORIEL_OK, oriel_session_append(other.get(), ids.data(), ids.size(), nullptr, nullptr));
  const std::vector<float> before = logits();
  loseIt();
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_session_append(other.get(), ids.data(), 1, nullptr, nullptr));
  oriel_status status = ORIEL_ERROR_INTERNAL;
  std::thread second(
      [&] { status = oriel_session_recover(other.get(), nullptr, 0, nullptr, nullptr, nullptr); });
  EXPECT_EQ(ORIEL_OK, recover());
  second.join();
  EXPECT_EQ(ORIEL_OK, status);
  EXPECT_EQ(before, logits());
  EXPECT_EQ(ORIEL_OK, oriel_session_append(other.get(), ids.data(), 1, nullptr, nullptr));
}

}  // namespace
}  // namespace oriel_internal::test::test_recovery_calls
