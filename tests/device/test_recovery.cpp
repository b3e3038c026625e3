// A session with a lost device continues as if nothing had happened: oriel_session_recover.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/files.h"
#include "support/random_families.h"
#include "support/recovery.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_recovery {
namespace {

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
  const uint32_t steps = allCases() ? 1 : !onVulkan() ? 3 : 7;
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
  for (const bool dropped : {true, false}) {
    SCOPED_TRACE(dropped);
    CapturedLog log;
    Options options = recoveryOptions(&log, 48, 8);
    options.set("transcript", dropped ? 4096 : 32768);
    Twins twins(kTrained, options);
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([&](const SessionPtr& session) {
      for (uint32_t i = 0; i < 5; ++i) {
        const std::string more(dropped ? 1500 : 0, 'a');
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
