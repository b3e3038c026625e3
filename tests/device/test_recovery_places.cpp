// A device lost during various operations: the operation ends, and the conversation continues.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "exec/transcript.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/recovery.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_recovery_places {
namespace {

namespace fs = std::filesystem;

const char* const kSchema =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "role": {"enum": ["admin", "user"]}}, "required": ["name", "age", "role"],
        "additionalProperties": false})";
const char* const kGrammar = R"(root ::= ("the " [a-z]+ ", ")+ "and no more.")";

struct Form {
  const char* schema;
  const char* grammar;
};

ReplyOptions heldTo(const Form& form, uint32_t tokens) {
  ReplyOptions options = greedyOptions(tokens);
  options.schema = form.schema;
  if (form.grammar != nullptr) {
    options.set("grammar", form.grammar);
  }
  return options;
}

RUNS_ON(kCpu);
TEST(RecoveryPlaces, a_reply_that_is_held_to_a_form) {
  for (const Form& form : {Form{kSchema, nullptr}, Form{nullptr, kGrammar}}) {
    for (const uint32_t after : {3u, 9u, 14u}) {
      SCOPED_TRACE(after);
      CapturedLog log;
      Options options = recoveryOptions(&log);
      options.set("constraints", true);
      Twins twins(kTrained, options);
      ASSERT_TRUE(twins.ok()) << log.errors();
      twins.both([](const SessionPtr& session) {
        ASSERT_EQ(ORIEL_OK, say(session, "Tell me about Ada."));
      });
      twins.losing.lose(Work::kRun, after);
      const Said cut = speak(twins.mine, oriel_chat_reply, heldTo(form, 80));
      EXPECT_EQ(ORIEL_ERROR_DEVICE, cut.status);
      ASSERT_FALSE(cut.ids.empty());
      const uint32_t shown = static_cast<uint32_t>(cut.ids.size());
      const Said whole = speak(twins.other, oriel_chat_reply, heldTo(form, shown));
      EXPECT_EQ(whole.ids, cut.ids);
      EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
      EXPECT_EQ(transcriptOf(twins.other), transcriptOf(twins.mine));
      twins.expectSame(10);
      twins.both([](const SessionPtr& session) { ASSERT_EQ(ORIEL_OK, say(session, "Again.")); });
      const Said again = speak(twins.mine, oriel_chat_reply, heldTo(form, 80));
      EXPECT_EQ(ORIEL_OK, again.status);
      EXPECT_EQ(speak(twins.other, oriel_chat_reply, heldTo(form, 80)).ids, again.ids);
      if (form.schema != nullptr) {
        EXPECT_TRUE(nlohmann::json::parse(again.text, nullptr, false).is_object()) << again.text;
      }
    }
  }
}

RUNS_ON(kCpu);
TEST(RecoveryPlaces, many_replies_at_once) {
  constexpr uint32_t kSessions = 4;
  const uint32_t windows[kSessions] = {0, 0, 48, 0};
  CapturedLog log;
  Options options = recoveryOptions(&log, 160, 8);
  options.sessions = kSessions;
  options.set("session_windows", listText(windows));
  options.set("constraints", true);
  LosableModel losing(kTrained, options);
  const ModelPtr model = loadModel(kTrained, options);
  std::vector<SessionPtr> mine, others;
  for (uint32_t i = 0; i < kSessions; ++i) {
    SessionOptions of;
    of.set("session_window", windows[i]);
    mine.push_back(newSession(losing.model, &of));
    others.push_back(newSession(model, &of));
  }
  const auto optionsOf = [](uint32_t i, uint32_t tokens) {
    ReplyOptions each = i == 1   ? wildOptions(tokens, 5)
                        : i == 3 ? heldTo({kSchema, nullptr}, tokens)
                                 : greedyOptions(tokens);
    each.set("ignore_stop", !(i == 3));
    return each;
  };
  for (const bool first : {true, false}) {
    SCOPED_TRACE(first);
    std::vector<ReplyOptions> asked;
    std::vector<Said> said(kSessions);
    std::vector<oriel_reply> replies(kSessions);
    for (uint32_t i = 0; i < kSessions; ++i) {
      const std::string text = "Tell me a story, number " + std::to_string(i) + ".";
      ASSERT_EQ(ORIEL_OK, say(mine[i], text));
      ASSERT_EQ(ORIEL_OK, say(others[i], text));
      asked.push_back(optionsOf(i, 60));
    }
    for (uint32_t i = 0; i < kSessions; ++i) {
      replies[i] = {
          sizeof(oriel_reply), mine[i].get(), &asked[i], keepSaid, &said[i], nullptr, 0, ORIEL_OK};
    }
    losing.watch();
    losing.lose(Work::kRun, first ? 9 : 30);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_reply_many(replies.data(), replies.size()));
    for (uint32_t i = kSessions; i-- > 0;) {  // in a different order
      SCOPED_TRACE(i);
      EXPECT_EQ(ORIEL_ERROR_DEVICE, replies[i].status);
      const uint32_t shown = static_cast<uint32_t>(said[i].ids.size());
      ASSERT_NE(0u, shown);
      EXPECT_EQ(speak(others[i], oriel_chat_reply, optionsOf(i, shown)).ids, said[i].ids);
      const oriel_recovered result = recoveredOf(mine[i].get());
      // The third session's window has moved in its second reply: it is read from the transcript.
      EXPECT_EQ(i == 2 && !first ? 0u : 1u, result.exact);
      EXPECT_EQ(positionOf(others[i]), positionOf(mine[i]));
      EXPECT_EQ(logitsOf(others[i]), logitsOf(mine[i]));
      EXPECT_EQ(generateIds(others[i], 6), generateIds(mine[i], 6));
    }
  }
}

// ---- Copies of a conversation ----------------------------------------------------------------------

struct Copying {
  const char* name;
  Work in;
  uint32_t after;
  /// With a snapshot of another conversation in a file.
  oriel_status (*act)(const SessionPtr& session, const std::string& other);
};

const Copying kCopies[] = {
    {"save", Work::kRead, 2,
     [](const SessionPtr& session, const std::string&) {
       std::vector<uint8_t> room(1 << 22);
       size_t needed = 0;
       return oriel_snapshot_save(session.get(), room.data(), room.size(), &needed);
     }},
    {"save_file", Work::kRead, 3,
     [](const SessionPtr& session, const std::string& other) {
       return oriel_session_save(session.get(), other.c_str(), 0);
     }},
    {"restore", Work::kWrite, 3,
     [](const SessionPtr& session, const std::string& other) {
       return oriel_session_restore(session.get(), other.c_str(), 0, nullptr);
     }},
    {"fork", Work::kCopy, 1,
     [](const SessionPtr& session, const std::string&) {
       oriel_session* fork = nullptr;
       const oriel_status status = oriel_session_fork(session.get(), &fork);
       EXPECT_EQ(nullptr, fork);
       return status;
     }},
};

class RecoveryOfCopies : public ScratchFolder, public testing::WithParamInterface<Copying> {};

RUNS_ON(kCpu);
TEST_P(RecoveryOfCopies, leaves_the_conversation_or_the_copy_whole) {
  const Copying& copying = GetParam();
  CapturedLog log;
  Options options = recoveryOptions(&log);
  options.sessions = 2;
  Twins twins(kTrained, options);
  ASSERT_TRUE(twins.ok()) << log.errors();
  const std::string file = (folder_ / "other").string();
  {
    const SessionPtr elsewhere = newSession(twins.model);
    ASSERT_EQ(ORIEL_OK, say(elsewhere, "Tell me a story about a dog and a cat."));
    ASSERT_EQ(ORIEL_OK, speak(elsewhere, oriel_chat_reply, 20).status);
    ASSERT_EQ(ORIEL_OK, oriel_session_save(elsewhere.get(), file.c_str(), 0));
  }
  twins.both([](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, say(session, "My name is Ada."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
  });
  twins.losing.lose(copying.in, copying.after);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, copying.act(twins.mine, file));
  EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
  EXPECT_EQ(transcriptOf(twins.other), transcriptOf(twins.mine));
  oriel_session* fork = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_fork(twins.mine.get(), &fork)) << "its place is free again";
  const SessionPtr forked(fork);
  twins.expectSame();
  ASSERT_EQ(ORIEL_OK, oriel_session_restore(forked.get(), file.c_str(), 0, nullptr))
      << "a whole file";
}

INSTANTIATE_TEST_SUITE_P(While, RecoveryOfCopies, testing::ValuesIn(kCopies),
                         [](const testing::TestParamInfo<Copying>& test) {
                           return test.param.name;
                         });

// A snapshot does not record the steps of its tokens: these are read in batches.
RUNS_ON(kCpu);
TEST(RecoveryPlaces, behind_what_came_from_a_snapshot) {
  CapturedLog log;
  Twins twins(kTrained, recoveryOptions(&log));
  ASSERT_TRUE(twins.ok()) << log.errors();
  std::vector<uint8_t> bytes(1 << 22);
  size_t needed = 0;
  ASSERT_EQ(ORIEL_OK, say(twins.other, "My name is Ada."));
  ASSERT_EQ(ORIEL_OK, speak(twins.other, oriel_chat_reply, 12).status);
  ASSERT_EQ(ORIEL_OK, oriel_snapshot_save(twins.other.get(), bytes.data(), bytes.size(), &needed));
  twins.both([&](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, oriel_snapshot_restore(session.get(), bytes.data(), needed, 0, nullptr));
    ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
  });
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, {5}));
  const oriel_recovered result = recoveredOf(twins.mine.get());
  EXPECT_EQ(0u, result.exact);
  EXPECT_EQ(0u, result.tokens_dropped);
  EXPECT_EQ(result.tokens_held, result.tokens_read);
  EXPECT_EQ(positionOf(twins.other), positionOf(twins.mine));
  EXPECT_EQ(turnsOf(twins.other), turnsOf(twins.mine));
  EXPECT_EQ(transcriptOf(twins.other), transcriptOf(twins.mine));
  EXPECT_EQ(generateIds(twins.other, 16), generateIds(twins.mine, 16));
}

// The first reply ends 2^62 + 1 tokens after its start, and everything else comes later: the size of its ids wraps to 4
// in 64 bits.
std::vector<uint8_t> withLongReply(const std::vector<uint8_t>& snapshot) {
  std::vector<uint8_t> bytes = snapshot;
  const SnapshotHeader header = headerOf(bytes);
  uint64_t moved = 0;
  for (size_t at = bytes.size() - 8 - header.transcript_bytes; at < bytes.size() - 8;) {
    Transcript::Entry entry;
    std::memcpy(static_cast<void*>(&entry), bytes.data() + at, sizeof(entry));
    entry.begin += moved;
    entry.text += moved;
    if (moved == 0 && (entry.flags & Transcript::kReply) != 0) {
      moved = entry.text + (uint64_t{1} << 62) + 1 - entry.end;
    }
    entry.end += moved;
    std::memcpy(bytes.data() + at, &entry, sizeof(entry));
    at += sizeof(entry) + entry.bytes;
  }
  return forged(bytes, [&](SessionState* state) {
    state->position += moved;
    state->stored += moved;
  });
}

// A claim of more tokens than the reply's text can have is not trusted.
RUNS_ON(kCpu);
TEST(RecoveryPlaces, behind_a_snapshot_whose_transcript_lies) {
  CapturedLog log;
  LosableModel losing(kTrained, recoveryOptions(&log, 48, 8));
  ASSERT_NE(nullptr, losing.model);
  const SessionPtr session = newSession(losing.model);
  ReplyOptions options = greedyOptions(60);
  options.set("ignore_stop", true);
  for (const char* const text : {"Tell me a story.", "Another."}) {
    ASSERT_EQ(ORIEL_OK, say(session, text));
    ASSERT_EQ(60u, speak(session, oriel_chat_reply, options).ids.size());
  }
  std::vector<uint8_t> bytes = savedBytes(session.get());
  bytes = withLongReply(bytes);
  ASSERT_EQ(ORIEL_OK, restoreFrom(session.get(), bytes)) << log.errors();
  const uint64_t position = positionOf(session);
  EXPECT_LT(uint64_t{1} << 62, position);
  losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(session, "Hello"));
  EXPECT_LT(0u, recoveredOf(session.get()).tokens_dropped);
  EXPECT_EQ(position, positionOf(session));
}

// No message can be read from it: the held tokens are used.
RUNS_ON(kCpu);
TEST(RecoveryPlaces, behind_a_snapshot_whose_transcript_is_no_conversation) {
  CapturedLog log;
  LosableModel losing(kTrained, recoveryOptions(&log, 48, 8));
  ASSERT_NE(nullptr, losing.model);
  const SessionPtr session = newSession(losing.model);
  for (const char* const text : {"Tell me a story.", "Another.", "And another."}) {
    ASSERT_EQ(ORIEL_OK, say(session, text));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 24).status);
  }
  std::vector<uint8_t> bytes = savedBytes(session.get());
  const std::string role = "\"user\"";
  const auto at = std::search(bytes.begin(), bytes.end(), role.begin(), role.end());
  ASSERT_NE(bytes.end(), at);
  at[1] = '7';
  makeSumsTrue(&bytes);
  ASSERT_EQ(ORIEL_OK, restoreFrom(session.get(), bytes)) << log.errors();
  const uint64_t position = positionOf(session);
  losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(session, "Hello"));
  EXPECT_LT(0u, recoveredOf(session.get()).tokens_dropped);
  EXPECT_EQ(position, positionOf(session));
  EXPECT_EQ("", log.errors());
}

// A fork shares no device memory, and is lost with the device.
RUNS_ON(kCpu);
TEST(RecoveryPlaces, a_session_and_its_fork) {
  CapturedLog log;
  Options options = recoveryOptions(&log);
  options.sessions = 2;
  Twins twins(kTrained, options);
  ASSERT_TRUE(twins.ok()) << log.errors();
  SessionPtr forks[2];
  uint32_t next = 0;
  twins.both([&](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, say(session, "My name is Ada."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
    forks[next] = forkOf(session);
    ASSERT_EQ(ORIEL_OK, say(forks[next], "Tell me a story."));
    ASSERT_EQ(ORIEL_OK, speak(forks[next++], oriel_chat_reply, 12).status);
  });
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "Hello"));
  EXPECT_EQ(1u, recoveredOf(forks[0].get()).exact) << "the fork first";
  EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
  EXPECT_EQ(logitsOf(forks[1]), logitsOf(forks[0]));
  EXPECT_EQ(generateIds(forks[1], 8), generateIds(forks[0], 8));
  twins.expectSame();
}

// ---- Weights and prefixes in files -----------------------------------------------------------------

// Embedding rows by layer, and experts: in few slots, whose contents are lost with the device.
RUNS_ON(kCpu);
TEST(RecoveryOnFile, weights_that_stay_in_their_file_are_found_again) {
  for (const char* const name : {"models/lfm2moe-q4_0.gguf", "models/gemma4-e-q8_0.gguf"}) {
    SCOPED_TRACE(name);
    ORIEL_NEED_DATA(path, name);
    CapturedLog log;
    Options options = recoveryOptions(&log, 120, 8);
    options.set("offload", "all");
    Twins twins(path, options);
    ASSERT_TRUE(twins.ok()) << log.errors();
    twins.both([](const SessionPtr& session) {
      ASSERT_EQ(ORIEL_OK, append(session, someIds(21, 250)));
      ASSERT_EQ(9u, generateIds(session, 9).size());
    });
    twins.losing.lose(Work::kRun, 2);
    EXPECT_EQ(ORIEL_ERROR_DEVICE, append(twins.mine, someIds(20, 250)));
    EXPECT_EQ(ORIEL_OK, append(twins.other, someIds(8, 250)));
    EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact) << log.errors();
    expectWithinPlan(twins.losing.model);
    twins.expectSame();
  }
}

class RecoveryBehindAPrefix : public ScratchFolder {
 protected:
  void SetUp() override {
    prefix_ = (folder_ / "prefix.gguf").string();
    fs::copy_file(ORIEL_TEST_DATA "/prefix/page.gguf", prefix_);
  }
  std::string prefix_;
};

RUNS_ON(kCpu);
TEST_F(RecoveryBehindAPrefix, that_was_trained_it_is_read_from_its_file) {
  CapturedLog log;
  Options options = recoveryOptions(&log, 300, 16);
  options.sessions = 2;
  options.set("prefix_file", prefix_);
  Twins twins(kTrained, options);
  ASSERT_TRUE(twins.ok()) << log.errors();
  const SessionPtr second = newSession(twins.losing.model);
  twins.both([](const SessionPtr& session) {
    ASSERT_EQ(ORIEL_OK, say(session, "Where does Ada live?"));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 12).status);
  });
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(twins.mine, "And who is she?"));
  fs::rename(prefix_, prefix_ + ".away");
  (void)recoveredOf(twins.mine.get(), ORIEL_ERROR_IO);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(second, "Hello")) << "still lost";
  // Same length, one other value: a retrained prefix.
  std::string other = read(prefix_ + ".away");
  other.back() ^= 1;
  write("prefix.gguf", other);
  (void)recoveredOf(twins.mine.get(), ORIEL_ERROR_IO);
  EXPECT_TRUE(log.says("another prefix")) << log.errors();
  fs::rename(prefix_ + ".away", prefix_);
  const oriel_recovered result = recoveredOf(twins.mine.get());
  EXPECT_EQ(1u, result.exact);
  EXPECT_EQ(result.tokens_held, result.tokens_read + 32) << "all but the prefix";
  EXPECT_EQ(1u, recoveredOf(second.get()).exact);
  EXPECT_EQ(32u, positionOf(second));
  twins.expectSame();
  const SessionPtr third = newSession(twins.model);
  ASSERT_EQ(ORIEL_OK, say(second, "Where does Ada live?"));
  ASSERT_EQ(ORIEL_OK, say(third, "Where does Ada live?"));
  EXPECT_EQ(logitsOf(third), logitsOf(second));
}

RUNS_ON(kCpu);
TEST_F(RecoveryBehindAPrefix, that_a_session_made_the_longest_window_reads_it_again) {
  const uint32_t windows[] = {200, 96};
  CapturedLog log;
  Options options = recoveryOptions(&log, 200, 16);
  options.sessions = 2;
  options.set("session_windows", listText(windows));
  options.set("prefix_tokens", 64);
  Twins twins(kTrained, options);
  ASSERT_TRUE(twins.ok()) << log.errors();
  SessionOptions of;
  of.set("session_window", 96);
  const auto begin = [&](const SessionPtr& session) {
    const ModelPtr& model = session == twins.mine ? twins.losing.model : twins.model;
    ASSERT_EQ(ORIEL_OK, append(session, someIds(40, 400)));
    ASSERT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), session.get()));
    ASSERT_EQ(ORIEL_OK, say(session, "Tell me a story."));
    ASSERT_EQ(ORIEL_OK, speak(session, oriel_chat_reply, 10).status);
  };
  twins.both(begin);
  const SessionPtr small = newSession(twins.losing.model, &of);
  const SessionPtr other_small = newSession(twins.model, &of);
  ASSERT_EQ(ORIEL_OK, say(small, "My name is Ada."));
  ASSERT_EQ(ORIEL_OK, say(other_small, "My name is Ada."));
  twins.losing.lose(Work::kRun, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, say(small, "Hello"));
  (void)recoveredOf(small.get(), ORIEL_ERROR_STATE);
  EXPECT_EQ(1u, recoveredOf(twins.mine.get()).exact);
  EXPECT_EQ(1u, recoveredOf(small.get()).exact);
  EXPECT_EQ(logitsOf(other_small), logitsOf(small));
  twins.expectSame();
}

}  // namespace
}  // namespace oriel_internal::test::test_recovery_places
