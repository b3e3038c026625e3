// A device lost during any operation: one line, no waiting, and the conversation is recoverable.
#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/losing_executor.h"
#include "support/sessions.h"
#include "support/watched_model.h"

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
