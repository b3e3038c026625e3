// What the desktop app does behind its window: texts, plans, conversations that move to another memory.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cache_stretches.h"
#include "engine.h"
#include "planner.h"
#include "text_edit.h"
#include "utf8.h"
#include "wrapped_text.h"

namespace desktop {
namespace {

const std::string kModel = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";

float one(uint32_t) { return 1; }

TEST(DesktopText, breaks_behind_spaces_at_newlines_and_within_long_words) {
  const std::string text = "ab cd\n\nefghij";
  std::string shown;
  for (const Line& line : wrapText(text, 4, one)) {
    shown += "[" + text.substr(line.begin, line.end - line.begin) + "]";
  }
  EXPECT_EQ(shown, "[ab ][cd][][efgh][ij]");
  EXPECT_EQ(wrapText("", 4, one).size(), 1u);
}

TEST(DesktopText, edits_whole_characters) {
  TextEdit edit;
  edit.insert("gr\xc3\xbc\xc3\x9f");
  edit.erase(false, false);
  EXPECT_EQ(edit.text(), "gr\xc3\xbc");
  edit.step(false, false, true);
  EXPECT_EQ(edit.selected(), "\xc3\xbc");
  edit.insert("o w");
  edit.erase(false, true);
  EXPECT_EQ(edit.text(), "gro ");
}

TEST(DesktopText, bytes_that_are_not_utf8_are_a_character_each) {
  EXPECT_EQ(utf8::next("\xff\xfe", 0), 1u);
  EXPECT_EQ(utf8::previous("a\xbf\xbf", 3), 2u);
  EXPECT_EQ(utf8::next("\xe4\xbd", 0), 1u);
}

TEST(DesktopText, a_transcript_survives_json) {
  std::vector<Message> back;
  ASSERT_TRUE(messagesFromJson(messagesToJson({{true, "a\"b\n"}, {false, "c"}}), &back));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(back[0].from_user);
  EXPECT_EQ(back[0].text, "a\"b\n");
  EXPECT_FALSE(messagesFromJson("{}", &back));
}

TEST(DesktopCache, stretches_cover_every_token_once) {
  CacheState cache;
  cache.position = 100;
  cache.sinks_used = 4;
  cache.first_visible = 30;
  cache.turns = {4, 20, 60};
  uint64_t end = 0;
  for (const CacheStretch& stretch : stretchesOf(cache)) {
    EXPECT_EQ(stretch.begin, end);
    end = stretch.end;
  }
  EXPECT_EQ(end, 100u);
}

PlanSettings settingsFor(uint64_t bytes) {
  PlanSettings settings;
  settings.model_path = kModel;
  settings.memory_bytes = bytes;
  settings.device = ORIEL_DEVICE_CPU;
  settings.chats = 2;
  return settings;
}

TEST(DesktopEngine, a_conversation_is_carried_into_other_memory_and_into_a_file) {
  Engine engine([] {});
  engine.load(settingsFor(40u << 20));
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  ReplySettings greedy;
  greedy.temperature = 0;
  greedy.max_tokens = 20;
  const int id = engine.state().chats.at(0).id;
  engine.send(id, "Hello!", greedy);
  engine.wait();
  const ChatState before = engine.state().chats.at(0);
  ASSERT_EQ(before.messages.size(), 2u);
  EXPECT_FALSE(before.messages[1].text.empty());

  engine.load(settingsFor(1));
  engine.wait();
  EXPECT_NE(engine.state().error.find("would do"), std::string::npos) << engine.state().error;
  const uint64_t would_do = engine.state().would_do_bytes;
  engine.load(settingsFor(would_do));
  engine.wait();
  const AppState after = engine.state();
  EXPECT_EQ(after.error, "");
  EXPECT_LE(after.model.allocated_bytes, would_do);
  EXPECT_EQ(after.chats.at(0).cache.position, before.cache.position);

  const std::string path = testing::TempDir() + "desktop.oriel";
  std::remove(path.c_str());
  engine.save(id, path);
  engine.wait();
  engine.restore(path);
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  EXPECT_EQ(engine.state().chats.at(1).messages.size(), 2u);
  std::remove(path.c_str());
}

// The device is lost while the file is there that ORIEL_FAULTS_WHEN names (tests/faults/layer).
TEST(DesktopRecovery, both_chats_go_on_on_the_same_device_or_on_the_cpu) {
  const char* const marker = std::getenv("ORIEL_FAULTS_WHEN");
  ASSERT_NE(marker, nullptr) << "run by ctest";
  std::remove(marker);
  ReplySettings greedy;
  greedy.temperature = 0;
  greedy.max_tokens = 12;
  std::string want;
  for (const oriel_device_kind device : {ORIEL_DEVICE_CPU, ORIEL_DEVICE_VULKAN}) {
    Engine engine([] {});
    PlanSettings settings = settingsFor(40u << 20);
    settings.device = device;
    engine.load(settings);
    engine.newChat();
    engine.wait();
    ASSERT_EQ(engine.state().error, "");
    const std::string name = engine.state().model.device;
    const int first = engine.state().chats.at(0).id, second = engine.state().chats.at(1).id;
    engine.send(first, "My name is Ada.", greedy);
    engine.send(second, "Hello!", greedy);
    engine.wait();
    if (device == ORIEL_DEVICE_CPU) {
      engine.send(first, "What is my name?", greedy);
      engine.wait();
      want = engine.state().chats.at(0).messages.back().text;
      ASSERT_NE(want, "");
      continue;
    }
    for (const bool works : {true, false}) {
      const uint64_t position = engine.state().chats.at(1).cache.position;
      std::fclose(std::fopen(marker, "w"));
      engine.send(second, "Are you there?", greedy);
      engine.wait();
      EXPECT_TRUE(engine.state().device_lost);
      EXPECT_NE(engine.state().error, "");
      if (works) {
        std::remove(marker);
      }
      engine.goOn();
      engine.wait();
      std::remove(marker);
      EXPECT_FALSE(engine.state().device_lost) << engine.state().error;
      EXPECT_EQ(engine.state().error, "");
      EXPECT_EQ(engine.state().model.device, works ? name : "CPU");
      EXPECT_EQ(engine.state().chats.at(1).cache.position, position);
    }
    engine.send(first, "What is my name?", greedy);
    engine.wait();
    EXPECT_EQ(engine.state().chats.at(0).messages.back().text, want);
  }
}

TEST(DesktopEngine, a_third_chat_is_refused_where_there_is_room_for_two) {
  Engine engine([] {});
  engine.load(settingsFor(40u << 20));
  engine.newChat();
  engine.newChat();
  engine.wait();
  EXPECT_EQ(engine.state().chats.size(), 2u);
  EXPECT_NE(engine.state().error.find("room for 2"), std::string::npos);
}

}  // namespace
}  // namespace desktop
