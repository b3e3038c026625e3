// A session's transcript, and conversations rebuilt from it. The rules are the host's: one device is enough for most
// tests.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "oriel/advanced.h"
#include "support/api.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_transcripts {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

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

/// Text of few tokens.
std::string words(size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    text += " and then";
  }
  text.resize(bytes);
  return text;
}

TEST(Transcripts, drop_the_oldest_but_the_system_message) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, keeping(&log, 4096, 800));
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "Be kind."));
  std::vector<Json> all;
  for (int i = 0; i < 12; ++i) {
    const std::string text = "Message " + std::to_string(i) + words(500);
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
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", words(2100)));
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

RUNS_ON(kOneDevice);
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

namespace oriel_internal::test::test_window_shares {

// Layers with a part of the session's window (Options.window_shares), against their definition.

namespace {

using Bytes = std::vector<uint8_t>;
using Shares = std::vector<uint8_t>;

struct Layout {
  std::string model = ORIEL_TEST_DATA "/models/llama-mqa.gguf";
  uint32_t sinks = 4;
  uint32_t window = 40;
  uint32_t chunk = 8;
  Shares shares;
};

Loaded loadAs(const Layout& layout) {
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  options.set("sinks", layout.sinks);
  options.window_tokens = layout.window;
  options.set("prefill_batch", layout.chunk);
  if (!layout.shares.empty()) {
    options.set("window_shares", listText(layout.shares));
  }
  return load(layout.model, options);
}

uint32_t layersOf(const std::string& model) { return describeFile(model, Options())["n_layers"]; }

// Eighths that differ by layer; the last layer sees all.
Shares mixedShares(uint32_t n_layers) {
  Shares shares(n_layers, 0);
  for (uint32_t layer = 0; layer + 1 < n_layers; ++layer) {
    shares[layer] = static_cast<uint8_t>(layer % 3 == 0 ? 64 : layer % 3 == 1 ? 160 : 0);
  }
  return shares;
}

std::vector<size_t> windowsOf(const Layout& layout) {
  std::vector<size_t> windows;
  for (const uint8_t share : layout.shares) {
    windows.push_back(share == 0 ? 0 : (size_t{layout.window} * share + 255) / 256);
  }
  return windows;
}

class WindowShares : public testing::TestWithParam<const char*> {
 protected:
  Layout mixed() const {
    Layout layout;
    layout.model = ORIEL_TEST_DATA "/models/" + std::string(GetParam()) + ".gguf";
    layout.shares = mixedShares(layersOf(layout.model));
    return layout;
  }
};

TEST_P(WindowShares, every_position_equals_the_definition_in_float64) {
  Layout layout = mixed();
  const std::vector<int32_t> ids = someIds(90, 256);
  for (const uint32_t sinks : {4u, 0u}) {
    layout.sinks = sinks;
    const Loaded loaded = loadAs(layout);
    ASSERT_TRUE(loaded.session);
    const auto rows = evaluate(loaded, ids);
    Float64Model reference(layout.model);
    reference.seeLess(windowsOf(layout));
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], sinks, layout.window)), 4e-3)
          << "token " << t << " sinks " << sinks;
    }
  }
}

// Generic, with local windows, with shared memories, with convolutions.
INSTANTIATE_TEST_SUITE_P(Models, WindowShares,
                         testing::Values("llama-mqa", "gemma3", "gemma4-e-q8_0", "lfm2-q8_0"),
                         [](const testing::TestParamInfo<const char*>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(SharedWindow, without_sinks_a_quarter_in_all_layers_is_a_quarter_of_the_window) {
  Layout quarter;
  quarter.sinks = 0;
  Layout part = quarter;
  quarter.window = 10;
  part.window = 40;
  part.shares.assign(1, 64);
  const std::vector<int32_t> ids = someIds(60, 512);
  const Loaded a = loadAs(quarter);
  const Loaded b = loadAs(part);
  const auto want = evaluate(a, ids);
  const auto got = evaluate(b, ids);
  for (size_t t = 0; t < ids.size(); ++t) {
    EXPECT_LT(relativeL2(got[t], want[t]), 1e-5) << t;
  }
}

TEST(SharedWindow, the_plan_has_a_group_for_each_length_and_takes_as_many_bytes) {
  Layout layout;
  const uint32_t n_layers = layersOf(layout.model);
  const Loaded whole = loadAs(layout);
  layout.shares.assign(n_layers, 128);
  layout.shares.back() = 0;
  const Loaded part = loadAs(layout);
  const FullPlan of_whole = planOf(whole);
  const FullPlan of_part = planOf(part);
  ASSERT_EQ(2u, of_part["groups"].size());
  EXPECT_EQ(1u, of_part["groups"][0]["layers"]);
  EXPECT_EQ(40u, of_part["groups"][0]["window_tokens"]);
  EXPECT_EQ(n_layers - 1, of_part["groups"][1]["layers"]);
  EXPECT_EQ(20u, of_part["groups"][1]["window_tokens"]);
  EXPECT_EQ("session", of_part["groups"][1]["kind"]);
  EXPECT_EQ(of_part.count("kv_bytes_at"), of_part["groups"][0]["bytes"].get<uint64_t>() +
                                              of_part["groups"][1]["bytes"].get<uint64_t>());
  EXPECT_EQ(of_whole.count("kv_bytes_at") * (n_layers + 1),
            of_part.count("kv_bytes_at") * 2 * n_layers);
  EXPECT_EQ(40u, of_part.window_tokens);
}

Bytes save(const Loaded& loaded) { return savedBytes(loaded.session.get()); }

oriel_restored restore(const Loaded& loaded, const Bytes& bytes) {
  oriel_restored result = ORIEL_INIT(oriel_restored);
  EXPECT_EQ(ORIEL_OK,
            oriel_snapshot_restore(loaded.session.get(), bytes.data(), bytes.size(), 0, &result));
  return result;
}

TEST(SharedWindow, a_snapshot_goes_on_to_the_bit) {
  Layout layout;
  layout.shares = mixedShares(layersOf(layout.model));
  const std::vector<int32_t> ids = someIds(70, 512);
  const Loaded a = loadAs(layout);
  (void)evaluate(a, ids);
  const Bytes bytes = save(a);
  const Loaded b = loadAs(layout);
  (void)restore(b, bytes);
  EXPECT_EQ(greedy(a, 24), greedy(b, 24));
  EXPECT_EQ(logitsOf(a), logitsOf(b));
}

// Tokens that the session's layers saw after the sinks, including the latest one.
size_t seenBehindSinks(const Loaded& loaded) {
  oriel_stats view = ORIEL_INIT(oriel_stats);
  EXPECT_EQ(ORIEL_OK, oriel_session_get_stats(loaded.session.get(), &view));
  return static_cast<size_t>(view.position - view.first_visible);
}

TEST(SharedWindow, a_snapshot_of_other_shares_is_carried_over_as_far_as_layers_hold_it) {
  Layout alike;
  alike.chunk = 1;  // so that rings hold exactly the visible tokens
  Layout shared = alike;
  shared.shares = mixedShares(layersOf(shared.model));
  const std::vector<int32_t> ids = someIds(120, 512);
  const std::vector<int32_t> begin(ids.begin(), ids.begin() + 60);
  for (const bool to_shared : {true, false}) {
    const Layout& from = to_shared ? alike : shared;
    const Layout& to = to_shared ? shared : alike;
    const Loaded saved = loadAs(from);
    (void)evaluate(saved, begin);
    const Loaded loaded = loadAs(to);
    (void)restore(loaded, save(saved));
    Float64Model reference(alike.model);
    if (!from.shares.empty()) {
      reference.seeLess(windowsOf(from));
    }
    for (const int32_t id : begin) {
      (void)reference.step(id, 4, 40);
    }
    reference.seeLess(to.shares.empty() ? std::vector<size_t>{} : windowsOf(to));
    for (size_t t = 60; t < ids.size(); ++t) {
      const auto row = evaluate(loaded, {ids[t]});
      const auto want = reference.step(ids[t], 4, seenBehindSinks(loaded));
      EXPECT_LT(relativeL2(row[0], want), 4e-3) << "token " << t << (to_shared ? " shared" : "");
    }
    EXPECT_EQ(40u, seenBehindSinks(loaded)) << "the window fills again";
  }
}

TEST(SharedWindow, going_back_is_as_if_it_had_not_been_read) {
  Layout layout;
  layout.chunk = 8;
  layout.shares = mixedShares(layersOf(layout.model));
  const std::vector<int32_t> ids = someIds(80, 512);
  const Loaded a = loadAs(layout);
  const Loaded b = loadAs(layout);
  (void)evaluate(a, ids);
  (void)evaluate(b, ids);
  (void)evaluate(b, someIds(5, 256));
  ASSERT_EQ(ORIEL_OK, goBackTo(b.session.get(), 80));
  EXPECT_EQ(evaluate(a, {7}), evaluate(b, {7}));
}

TEST(SharedWindow, sessions_that_decode_together_write_what_each_writes_alone) {
  Layout layout;
  layout.shares = mixedShares(layersOf(layout.model));
  Options options = makeOptions();
  options.memory_bytes = 256u << 20;
  options.window_tokens = layout.window;
  options.set("window_shares", listText(layout.shares));
  options.sessions = 2;
  const uint32_t windows[] = {0, 24};
  options.set("session_windows", listText(windows));
  const Loaded loaded = load(layout.model, options);
  ASSERT_TRUE(loaded.session);
  const std::vector<int32_t> ids = someIds(90, 512);
  (void)evaluate(loaded, ids);
  SessionOptions of_second;
  of_second.set("session_window", 24);
  oriel_session* second = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(loaded.model.get(), &of_second, &second));
  SessionPtr owned(second);
  std::vector<std::vector<float>> rows;
  ASSERT_EQ(ORIEL_OK, oriel_session_append(second, ids.data(), ids.size(), keepRow, &rows));
  Layout alone = layout;
  alone.window = 24;
  const Loaded of_its_own = loadAs(alone);
  const auto want = evaluate(of_its_own, ids);
  for (size_t t = 0; t < ids.size(); ++t) {
    EXPECT_LT(relativeL2(rows[t], want[t]), 1e-3) << t;
  }
}

TEST(SharedWindow, another_number_of_shares_than_layers_is_refused) {
  Layout layout;
  const Shares shares(layersOf(layout.model) + 1, 0);
  CapturedLog log;
  Options options = makeOptions(&log);
  options.set("window_shares", listText(shares));
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(layout.model.c_str(), &options, &model));
  EXPECT_TRUE(log.says("a number per layer")) << log.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_window_shares
