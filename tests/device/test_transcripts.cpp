// A session's transcript, and conversations rebuilt from it. The rules are the host's: one device is enough for most
// tests.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "oriel/advanced.h"
#include "support/sessions.h"

namespace oriel_internal::test::test_transcripts {
namespace {

using Json = nlohmann::json;

Options keeping(CapturedLog* log, uint32_t bytes = 65536, uint32_t window = 400) {
  Options options = cpuOptions(log, window);
  options.set("transcript", bytes);
  return options;
}

std::string exported(oriel_session* session) {
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_transcript_export(session, nullptr, 0, &needed));
  std::string text(needed, 'x');
  EXPECT_EQ(ORIEL_OK, oriel_transcript_export(session, text.data(), text.size(), &needed));
  EXPECT_EQ('\0', text.back());
  text.pop_back();
  return text;
}
Json messagesOf(const Loaded& loaded) { return Json::parse(exported(loaded.session.get())); }

Json infoOf(const Loaded& loaded) { return describe(loaded)["transcript"]; }

oriel_status import(const Loaded& loaded, const std::string& json) {
  return oriel_transcript_import(loaded.session.get(), json.data(), json.size());
}

/// The reply's text.
std::string reply(const Loaded& loaded, uint32_t tokens = 12) {
  const Heard heard = listen(oriel_chat_reply, loaded, greedyOptions(tokens));
  EXPECT_EQ(ORIEL_OK, heard.status);
  return heard.text;
}

Json message(const std::string& role, const std::string& text) {
  return {{"role", role}, {"content", text}};
}

TEST(Transcripts, hold_what_was_said_in_planned_memory) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, keeping(&log));
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "Be \"kind\".\n"));
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "My name is Ada \xF0\x9F\x8C\x8D."));
  const std::string first = reply(loaded);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "What is my name?"));
  const std::string second = reply(loaded);
  const Json expected = {message("system", "Be \"kind\".\n"),
                         message("user", "My name is Ada \xF0\x9F\x8C\x8D."),
                         message("assistant", first), message("user", "What is my name?"),
                         message("assistant", second)};
  EXPECT_EQ(expected, messagesOf(loaded));
  Json info = infoOf(loaded);
  EXPECT_EQ(5u, info["messages"]);
  EXPECT_EQ(0u, info["dropped"]);
  EXPECT_EQ(65536u, info["capacity"]);
  EXPECT_LE(exported(loaded.session.get()).size(), info["bytes"].get<size_t>() + 6);
  EXPECT_EQ(65536u, planOf(loaded).count("transcript_bytes"));

  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  EXPECT_EQ("[]", exported(loaded.session.get()));

  CapturedLog other_log;
  const Loaded bare = load(kTrained, cpuOptions(&other_log, 400));
  ASSERT_EQ(ORIEL_OK, add(bare, "user", "Hello"));
  EXPECT_EQ(1u, infoOf(bare)["messages"]);
  EXPECT_EQ(32768u, infoOf(bare)["capacity"]);
  EXPECT_EQ(planOf(bare).host_bytes + 32768, planOf(loaded).host_bytes);
}

TEST(Transcripts, hold_messages_in_the_openai_form_as_they_came) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, keeping(&log));
  const Json messages = {message("user", "One"), message("assistant", "Two"),
                         message("user", "Three")};
  const std::string text = messages.dump();
  ASSERT_EQ(ORIEL_OK, oriel_chat_add(loaded.session.get(), nullptr, text.data(), text.size()));
  EXPECT_EQ(messages, messagesOf(loaded));
}

TEST(Transcripts, drop_the_oldest_but_the_system_message) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, keeping(&log, 4096, 800));
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "Be kind."));
  std::vector<Json> all;
  for (int i = 0; i < 12; ++i) {
    const std::string text = "Message " + std::to_string(i) + std::string(500, 'a');
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
    all.push_back(message("user", text));
    const Json kept = messagesOf(loaded);
    Json info = infoOf(loaded);
    ASSERT_EQ(info["messages"], kept.size());
    ASSERT_EQ(all.size() + 1, info["messages"].get<size_t>() + info["dropped"].get<size_t>());
    ASSERT_LE(info["bytes"], info["capacity"]);
    ASSERT_EQ(message("system", "Be kind."), kept[0]);
    for (size_t k = 1; k < kept.size(); ++k) {
      EXPECT_EQ(all[all.size() - kept.size() + k], kept[k]);
    }
  }
  EXPECT_GT(infoOf(loaded)["dropped"], 4u);
  EXPECT_GT(infoOf(loaded)["messages"], 3u);
  // A message larger than half the capacity is not exported.
  const Json before = messagesOf(loaded);
  const uint32_t dropped = infoOf(loaded)["dropped"];
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", std::string(2100, 'b')));
  EXPECT_LT(dropped, infoOf(loaded)["dropped"]);
  const Json after = messagesOf(loaded);
  EXPECT_EQ(before.back(), after.back());
  EXPECT_LE(before.size() - 1, after.size());
}

TEST(Transcripts, lose_a_message_that_is_taken_back) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, keeping(&log));
  oriel_session* const session = loaded.session.get();
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Tell me something long."));
  const uint64_t asked = statsOf(loaded).position;
  const std::string told = reply(loaded);
  const uint64_t answered = statsOf(loaded).position;
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "And more?"));
  ASSERT_EQ(3u, messagesOf(loaded).size());
  ASSERT_EQ(ORIEL_OK, goBackTo(session, answered));
  EXPECT_EQ(Json({message("user", "Tell me something long."), message("assistant", told)}),
            messagesOf(loaded));
  // Into the reply: the rest of it.
  ASSERT_EQ(ORIEL_OK, goBackTo(session, answered - 4));
  const Json part = messagesOf(loaded);
  ASSERT_EQ(2u, part.size());
  const std::string left = part[1]["content"];
  EXPECT_LT(left.size(), told.size());
  EXPECT_GT(left.size(), 0u);
  EXPECT_EQ(told.substr(0, left.size()), left);
  ASSERT_EQ(ORIEL_OK, goBackTo(session, asked));
  EXPECT_EQ(Json({message("user", "Tell me something long.")}), messagesOf(loaded));
  ASSERT_EQ(ORIEL_OK, goBackTo(session, 0));
  EXPECT_EQ("[]", exported(session));
}

TEST(Transcripts, build_a_conversation_again) {
  CapturedLog log;
  const Options options = keeping(&log);
  const Loaded loaded = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "You are a helpful assistant."));
  for (const char* const text : {"My name is Ada.", "I have a red cat.", "It likes fish."}) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
    (void)reply(loaded, 40);
  }
  const std::string json = exported(loaded.session.get());
  const Loaded again = load(kTrained, options);
  ASSERT_EQ(ORIEL_OK, import(again, json)) << log.errors();
  EXPECT_EQ(json, exported(again.session.get()));
  for (const Loaded* one : {&loaded, &again}) {
    ASSERT_EQ(ORIEL_OK, add(*one, "user", "What is my name?"));
  }
  // The same tokens in other batches.
  EXPECT_EQ(statsOf(loaded).position, statsOf(again).position);
  const std::vector<float> expected = logitsOf(loaded);
  const std::vector<float> got = logitsOf(again);
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(expected[i], got[i], 0.01f) << i;
  }
  EXPECT_EQ(reply(loaded), reply(again));
  EXPECT_EQ(exported(loaded.session.get()), exported(again.session.get()));

  EXPECT_EQ(ORIEL_ERROR_STATE, import(again, json));
  EXPECT_TRUE(log.says("into an empty one")) << log.errors();
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(again.session.get()));
  for (const char* const text : {"", "{", "{}", "[1]", "[{}]", "[{\"role\":\"user\"}", "[[]]",
                                 "[{\"role\":7,\"content\":\"x\"}]", "\"text\""}) {
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, import(again, text)) << text;
    EXPECT_EQ(1u, errorLines(log)) << text << log.errors();
  }
  EXPECT_EQ(0u, statsOf(again).position);
  EXPECT_EQ(ORIEL_OK, import(again, "[]"));
}

TEST(Transcripts, say_how_far_they_are_read_and_stop_when_told) {
  CapturedLog log;
  const Options options = keeping(&log);
  oriel_model* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kTrained, &options, &made));
  Loaded loaded;
  loaded.model.reset(made);
  struct Steps {
    std::vector<std::pair<uint64_t, uint64_t>> seen;
    size_t stop_at = 0;
  } steps;
  SessionOptions session_options;
  session_options.progress = [](uint64_t done, uint64_t total, void* user) {
    Steps& self = *static_cast<Steps*>(user);
    self.seen.emplace_back(done, total);
    return self.seen.size() == self.stop_at ? 1 : 0;
  };
  session_options.progress_user = &steps;
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(made, &session_options, &session));
  loaded.session.reset(session);
  Json messages;
  for (int i = 0; i < 6; ++i) {
    messages.push_back(message(i % 2 == 0 ? "user" : "assistant",
                               "Some words about the sea " + std::to_string(i)));
  }
  ASSERT_EQ(ORIEL_OK, import(loaded, messages.dump()));
  ASSERT_GE(steps.seen.size(), 6u);
  for (size_t i = 1; i < steps.seen.size(); ++i) {
    EXPECT_LE(steps.seen[i].first, steps.seen[i].second);
    EXPECT_LT(steps.seen[i - 1].first, steps.seen[i].first);
  }
  EXPECT_EQ(steps.seen.back().first, steps.seen.back().second);
  const uint64_t whole = statsOf(loaded).position;
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session));
  steps.seen.clear();
  steps.stop_at = 4;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, import(loaded, messages.dump()));
  EXPECT_LT(statsOf(loaded).position, whole);
  EXPECT_LT(messagesOf(loaded).size(), 6u);
  EXPECT_GT(messagesOf(loaded).size(), 0u);
  EXPECT_EQ("", log.errors());
  // A cancelled message does not count as said.
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(session));
  steps.seen.clear();
  steps.stop_at = 1;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, add(loaded, "user", std::string(200, 'x')));
  EXPECT_EQ("[]", exported(session));
}

}  // namespace
}  // namespace oriel_internal::test::test_transcripts
