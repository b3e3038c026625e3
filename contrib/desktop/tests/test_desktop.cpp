// The desktop app without its window: texts, plans, conversations that move to another memory size.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "conversation.h"
#include "engine.h"
#include "files.h"
#include "planner.h"
#include "visual_line.h"

namespace desktop {
namespace {

const std::string kModel = ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf";
const std::string kReference = ORIEL_REFERENCE_DATA "/";
const std::string kOtherModel = ORIEL_TEST_Q4_0;

float one(uint32_t, size_t) { return 1; }

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

TEST(DesktopText, pictures_of_a_transcript_are_files_before_the_text) {
  std::vector<Message> back;
  ASSERT_TRUE(
      messagesFromJson(messagesToJson({{true, "What?", {"a.png", "b.jpg"}}, {false, "c"}}), &back));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].text, "What?");
  EXPECT_EQ(back[0].pictures, (std::vector<std::string>{"a.png", "b.jpg"}));
  ASSERT_TRUE(messagesFromJson(
      R"([{"role":"user","content":[{"type":"image","id":"7"},{"type":"text","text":"x"},3]}])",
      &back));
  EXPECT_EQ(back[0].text, "x");
  EXPECT_TRUE(back[0].pictures.empty());
}

TEST(DesktopFiles, are_told_apart) {
  EXPECT_EQ(kindOf("cat.png"), FileKind::kPicture);
  EXPECT_EQ(kindOf("cat.JPG"), FileKind::kPicture);
  EXPECT_EQ(kindOf(kModel), FileKind::kModel);
  EXPECT_EQ(kindOf("missing.gguf"), FileKind::kModel);
  if (!fileIsThere(kReference + "vision/mmproj-gemma4v.gguf")) {
    GTEST_SKIP() << "reference data is not there";
  }
  EXPECT_EQ(kindOf(kReference + "vision/mmproj-gemma4v.gguf"), FileKind::kEncoder);
  EXPECT_EQ(kindOf(kReference + "vision/gemma4.gguf"), FileKind::kModel);
  EXPECT_EQ(kindOf(kReference + "lora/qwen3.gguf"), FileKind::kAdapter);
  const auto adapters = adaptersIn(kReference + "lora");
  EXPECT_NE(std::find(adapters.begin(), adapters.end(), kReference + "lora/qwen3.gguf"),
            adapters.end());
  EXPECT_TRUE(adaptersIn(kReference + "nowhere").empty());
}

TEST(DesktopMarkdown, code_stands_in_blocks_of_its_own) {
  const auto blocks =
      blocksOf("## Title\nA **bold** word, `code`.\n\n```py\nx = 1\n\ny\n```\n- one\n");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].text, "Title\nA bold word, code.");
  EXPECT_FALSE(blocks[0].code);
  ASSERT_EQ(blocks[0].spans.size(), 3u);
  const auto textOf = [&](const Span& span) {
    return blocks[0].text.substr(span.begin, span.end - span.begin);
  };
  EXPECT_EQ(textOf(blocks[0].spans[0]), "Title");
  EXPECT_EQ(textOf(blocks[0].spans[1]), "bold");
  EXPECT_EQ(blocks[0].spans[1].style, TextStyle::kBold);
  EXPECT_EQ(textOf(blocks[0].spans[2]), "code");
  EXPECT_EQ(blocks[0].spans[2].style, TextStyle::kCode);
  EXPECT_TRUE(blocks[1].code);
  EXPECT_EQ(blocks[1].text, "x = 1\n\ny");
  EXPECT_EQ(blocks[2].text, "\xe2\x80\xa2 one");
}

TEST(DesktopMarkdown, a_reply_that_is_still_written_is_shown) {
  EXPECT_EQ(blocksOf("").size(), 1u);
  EXPECT_EQ(blocksOf("a **bo").at(0).text, "a **bo");
  const auto blocks = blocksOf("See:\n```\nx = ");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_TRUE(blocks[1].code);
  EXPECT_EQ(blocks[1].text, "x = ");
  EXPECT_EQ(blocksOf("a\033[31mb").at(0).text.find('\033'), std::string::npos);
}

std::vector<uint32_t> drawn(const std::string& text, size_t begin = 0) {
  std::vector<uint32_t> characters;
  for (const VisualCharacter& one : visualLine(text, {begin, text.size()}).characters) {
    characters.push_back(one.character);
  }
  return characters;
}

TEST(DesktopText, characters_that_show_nothing_are_left_out) {
  EXPECT_EQ(drawn("a\xe2\x80\x8d\xef\xb8\x8f\xf0\x9f\x98\x80"),
            (std::vector<uint32_t>{'a', 0x1f600}));
}

TEST(DesktopText, scripts_from_right_to_left_are_put_in_order_and_joined) {
#ifndef ORIEL_ICU
  GTEST_SKIP() << "built without ICU";
#endif
  const std::string hebrew = "a\nx \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d 12";
  EXPECT_EQ(drawn(hebrew, 2),
            (std::vector<uint32_t>{'x', ' ', '1', '2', ' ', 0x5dd, 0x5d5, 0x5dc, 0x5e9}));
  // Beh and heh, which join.
  const std::string arabic = "\xd8\xa8\xd9\x87";
  EXPECT_EQ(drawn(arabic), (std::vector<uint32_t>{0xfeea, 0xfe91}));
  const VisualLine line = visualLine(arabic, {0, arabic.size()});
  EXPECT_TRUE(line.leftwards);
  EXPECT_EQ(line.characters[0].at, 2u);
  EXPECT_TRUE(line.characters[0].leftwards);
}

TEST(DesktopText, lam_and_alef_become_one_letter_and_marks_follow_theirs) {
#ifndef ORIEL_ICU
  GTEST_SKIP() << "built without ICU";
#endif
  const std::string lam_alef = "\xd9\x84\xd8\xa7 1";
  EXPECT_EQ(drawn(lam_alef), (std::vector<uint32_t>{'1', ' ', 0xfefb}));
  // Beh with fatha, then heh.
  const std::string mark = "\xd8\xa8\xd9\x8e\xd9\x87";
  EXPECT_EQ(drawn(mark), (std::vector<uint32_t>{0xfeea, 0xfe91, 0x64e}));
}

TEST(DesktopText, lines_are_ordered_by_their_paragraph) {
#ifndef ORIEL_ICU
  GTEST_SKIP() << "built without ICU";
#endif
  // Shin, then a line with brackets, Latin letters and an emoji (two units of UTF-16).
  const std::string text = "\xd7\xa9 (a\xf0\x9f\x98\x80) b\nc";
  const VisualLine line = visualLine(text, {3, text.size() - 2});
  EXPECT_TRUE(line.leftwards);
  std::vector<uint32_t> characters;
  for (const VisualCharacter& one : line.characters) {
    characters.push_back(one.character);
  }
  EXPECT_EQ(characters, (std::vector<uint32_t>{'b', ' ', '(', 0x1f600, 'a', ')'}));
  EXPECT_FALSE(visualLine(text, {text.size() - 1, text.size()}).leftwards);
  // Invalid bytes and paragraph separators lose nothing.
  EXPECT_EQ(drawn("\xd7\xa9\xff\xe2\x80\xa9"
                  "a\xf5")
                .size(),
            5u);
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
  settings.device = "cpu";
  settings.chats = 2;
  return settings;
}

ReplySettings greedyFor(int tokens) {
  ReplySettings settings;
  settings.temperature = 0;
  settings.max_tokens = tokens;
  return settings;
}

TEST(DesktopEngine, a_conversation_is_carried_into_other_memory_and_into_a_file) {
  Engine engine([] {});
  engine.load(settingsFor(40u << 20));
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  const ReplySettings greedy = greedyFor(20);
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

TEST(DesktopEngine, a_picture_goes_with_its_message_and_is_carried_over) {
  if (!fileIsThere(kReference + "vision/gemma4.gguf")) {
    GTEST_SKIP() << "reference data is not there";
  }
  const std::string picture = kReference + "vision/img-dot.png";
  const ReplySettings greedy = greedyFor(4);
  PlanSettings settings = settingsFor(64u << 20);
  settings.model_path = kReference + "vision/gemma4.gguf";
  settings.mmproj = kReference + "vision/mmproj-gemma4v.gguf";
  settings.window_tokens = 1024;
  Engine engine([] {});
  engine.load(settings);
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  const int id = engine.state().chats.at(0).id;
  engine.send(id, "What is this?", greedy, false, {picture});
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  const ChatState seen = engine.state().chats.at(0);
  EXPECT_EQ(seen.messages.at(0).pictures, std::vector<std::string>{picture});
  EXPECT_GT(seen.cache.position, 250u);

  engine.send(id, "And this?", greedy, false, {kReference + "vision/missing.png"});
  engine.wait();
  EXPECT_NE(engine.state().error.find("missing.png"), std::string::npos) << engine.state().error;
  engine.dismissError();
  engine.send(id, "So?", greedy);
  engine.wait();
  EXPECT_EQ(engine.state().error, "");
  const uint64_t position = engine.state().chats.at(0).cache.position;

  // Read again by a chat of the store, with the picture while the model sees.
  const std::vector<Message> messages = engine.state().chats.at(0).messages;
  engine.reopen({{"chat", "", messages, ""}});
  engine.wait();
  const int reopened = engine.state().chats.at(1).id;
  engine.send(reopened, "And?", greedy);
  engine.wait();
  EXPECT_EQ(engine.state().error, "");
  EXPECT_GT(engine.state().chats.at(1).cache.position, position);
  engine.closeChat(reopened);

  // Another picture size does not fit the snapshot, and without an encoder the text is left.
  settings.mmproj.clear();
  engine.load(settings);
  engine.wait();
  EXPECT_EQ(engine.state().error, "");
  engine.send(id, "Still there?", greedy);
  engine.wait();
  EXPECT_EQ(engine.state().error, "");
  EXPECT_LT(engine.state().chats.at(0).cache.position, position);
  EXPECT_EQ(engine.state().chats.at(0).messages.at(0).pictures.size(), 1u);
}

TEST(DesktopEngine, chats_have_adapters_of_their_own) {
  if (!fileIsThere(kReference + "lora/qwen3.gguf")) {
    GTEST_SKIP() << "reference data is not there";
  }
  const std::string adapter = kReference + "lora/qwen3.gguf";
  const ReplySettings greedy = greedyFor(12);
  PlanSettings settings = settingsFor(64u << 20);
  settings.model_path = kReference + "models/qwen3.gguf";
  settings.window_tokens = 256;
  Engine engine([] {});
  engine.load(settings);
  engine.newChat();
  engine.wait();
  const int plain = engine.state().chats.at(0).id, adapted = engine.state().chats.at(1).id;
  engine.send(plain, "Hello!", greedy);
  engine.send(adapted, "Hello!", greedy);
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  const std::string reply = engine.state().chats.at(0).messages.back().text;

  engine.useAdapter(adapted, adapter);  // not loaded yet
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  EXPECT_EQ(engine.state().chats.at(0).adapter, "");
  EXPECT_EQ(engine.state().chats.at(1).adapter, adapter);
  EXPECT_EQ(engine.state().model.settings.adapters, std::vector<std::string>{adapter});
  for (const int id : {plain, adapted}) {
    engine.send(id, "Go on.", greedy);
  }
  engine.wait();
  ASSERT_EQ(engine.state().error, "");
  EXPECT_NE(engine.state().chats.at(0).messages.back().text,
            engine.state().chats.at(1).messages.back().text);

  settings = engine.state().model.settings;
  settings.window_tokens = 300;
  engine.load(settings);
  engine.wait();
  EXPECT_EQ(engine.state().error, "");
  EXPECT_EQ(engine.state().chats.at(1).adapter, adapter) << "it goes with the chat";

  engine.useAdapter(adapted, kReference + "lora/lfm2.gguf");
  engine.wait();
  EXPECT_NE(engine.state().error, "");
  EXPECT_EQ(engine.state().model.phase, ModelPhase::kReady);
  EXPECT_EQ(engine.state().chats.at(1).adapter, adapter)
      << "an adapter of another model changes nothing";
  engine.dismissError();
  engine.useAdapter(adapted, "");
  engine.wait();
  EXPECT_EQ(engine.state().chats.at(1).adapter, "");

  engine.closeChat(plain);
  engine.reopen({{"chat", "", {{true, "Hello!"}, {false, reply}}, adapter}});
  engine.wait();
  EXPECT_EQ(engine.state().chats.back().adapter, adapter);

  PlanSettings wrong = settings;  // as remembered, of a file that has changed since
  wrong.adapters = {kReference + "lora/lfm2.gguf"};
  Engine other([] {});
  other.load(wrong);
  other.wait();
  EXPECT_NE(other.state().error, "");
  EXPECT_EQ(other.state().model.phase, ModelPhase::kReady);
}

// The device is lost while the file named by ORIEL_FAULTS_WHEN exists (tests/faults/layer).
TEST(DesktopRecovery, both_chats_go_on_on_the_same_device_or_on_the_cpu) {
  const char* const marker = std::getenv("ORIEL_FAULTS_WHEN");
  ASSERT_NE(marker, nullptr) << "run by ctest";
  std::remove(marker);
  const ReplySettings greedy = greedyFor(12);
  std::string want;
  for (const std::string device : {"cpu", "vulkan"}) {
    Engine engine([] {});
    PlanSettings settings = settingsFor(40u << 20);
    settings.device = device;
    settings.chats = 3;
    engine.load(settings);
    engine.newChat();
    engine.wait();
    ASSERT_EQ(engine.state().error, "");
    const std::string name = engine.state().model.device;
    const int first = engine.state().chats.at(0).id, second = engine.state().chats.at(1).id;
    engine.send(first, "My name is Ada.", greedy);
    engine.send(second, "Hello!", greedy);
    engine.wait();
    if (device == "cpu") {
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
      engine.fork(second);
      engine.wait();
      EXPECT_EQ(engine.state().error.find("no memory"), std::string::npos) << engine.state().error;
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

TEST(DesktopEngine, a_file_is_written_before_its_chat_or_the_program_ends) {
  const std::string path = testing::TempDir() + "desktop-last.oriel";
  for (int i = 0; i < 16; i++) {
    std::filesystem::remove(path);
    {
      Engine engine([] {});
      engine.load(settingsFor(40u << 20));
      engine.wait();
      const int id = engine.state().chats.at(0).id;
      engine.send(id, "Tell me a long story.", greedyFor(0));
      engine.save(id, path);
      if (i % 2 == 0) {
        engine.closeChat(id);
        engine.wait();
        EXPECT_TRUE(std::filesystem::exists(path)) << i;
      }
    }
    EXPECT_TRUE(std::filesystem::exists(path)) << i;
  }
  std::filesystem::remove(path);
}

/// A snapshot from another program: of messages, or of text outside messages.
void saveSnapshot(const std::string& path, int turns, bool messages) {
  PlanSettings settings = settingsFor(40u << 20);
  oriel::Options options = libraryOptions(settings);
  oriel_model* model = nullptr;
  ASSERT_EQ(oriel_model_load(kModel.c_str(), &options, &model), ORIEL_OK);
  oriel_session* session = nullptr;
  ASSERT_EQ(oriel_session_create(model, nullptr, &session), ORIEL_OK);
  const oriel::ReplyOptions greedy = libraryOptions(greedyFor(20));
  const std::string text = "My name is Ada.";
  for (int i = 0; i < turns; i++) {
    ASSERT_EQ(messages ? oriel_chat_add(session, "user", text.data(), text.size())
                       : oriel_session_append_text(session, text.data(), text.size(), 0),
              ORIEL_OK);
    ASSERT_EQ(messages ? oriel_chat_reply(session, &greedy, nullptr, nullptr, nullptr)
                       : oriel_session_generate(session, &greedy, nullptr, nullptr, nullptr),
              ORIEL_OK);
  }
  ASSERT_EQ(oriel_session_save(session, path.c_str(), ORIEL_SAVE_OVERWRITE), ORIEL_OK);
  oriel_session_destroy(session);
  oriel_model_free(model);
}

TEST(DesktopEngine, a_snapshot_without_a_transcript_is_carried_over_or_a_line_says_that_it_is_not) {
  const std::string path = testing::TempDir() + "desktop-plain.oriel";
  saveSnapshot(path, 3, false);
  Engine engine([] {});
  engine.load(settingsFor(40u << 20));
  engine.restore(path);
  engine.wait();
  const ChatState before = engine.state().chats.at(1);
  ASSERT_GT(before.cache.position, 0u) << engine.state().error;
  EXPECT_TRUE(before.messages.empty());

  engine.load(settingsFor(48u << 20));
  engine.wait();
  EXPECT_EQ(engine.state().chats.at(0).note, "");  // the conversation is empty
  EXPECT_EQ(engine.state().chats.at(1).cache.position, before.cache.position);
  EXPECT_NE(engine.state().chats.at(1).note.find("kept"), std::string::npos);

  PlanSettings other = settingsFor(48u << 20);
  other.model_path = kOtherModel;
  other.system_prompt = "You are a helpful assistant.";
  engine.load(other);
  engine.wait();
  const std::string note = engine.state().chats.at(1).note;
  EXPECT_EQ(note.find("not carried over: "), 0u) << note;
  EXPECT_GT(note.size(), std::string("not carried over: ").size());
  engine.load(settingsFor(40u << 20));
  engine.wait();
  // the shared prompt is not part of the conversation
  EXPECT_EQ(engine.state().chats.at(0).note, "");
  EXPECT_EQ(engine.state().chats.at(1).note, "");
  std::filesystem::remove(path);
}

TEST(DesktopEngine, a_chat_of_the_store_is_read_with_its_next_message) {
  const std::vector<Message> said = {{true, "Hello!"}, {false, "Hello! It is nice to meet you."}};
  Engine engine([] {});
  engine.reopen({{"a.json", "Hello!", said}, {"b.json", "Hello!", said}});
  engine.load(settingsFor(40u << 20));
  engine.wait();
  ASSERT_EQ(engine.state().chats.size(), 2u);
  const ChatState shown = engine.state().chats.at(1);
  EXPECT_EQ(shown.messages.size(), 2u);
  EXPECT_EQ(shown.file, "b.json");
  EXPECT_EQ(shown.cache.position, 0u);  // nothing was read so far
  engine.load(settingsFor(48u << 20));  // it moves unread
  engine.wait();
  EXPECT_EQ(engine.state().chats.at(1).cache.position, 0u);
  engine.send(shown.id, "What is 45 + 38?", greedyFor(20));
  engine.wait();
  const ChatState after = engine.state().chats.at(1);
  ASSERT_EQ(after.messages.size(), 4u);
  EXPECT_NE(after.messages[3].text.find("83"), std::string::npos) << after.messages[3].text;
  // Like a session that heard everything from the start.
  const std::string path = testing::TempDir() + "desktop-unread.oriel";
  std::filesystem::remove(path);
  engine.save(engine.state().chats.at(0).id, path);
  engine.wait();
  EXPECT_TRUE(std::filesystem::exists(path)) << engine.state().error;
  EXPECT_GT(engine.state().chats.at(0).cache.position, 0u);
  std::filesystem::remove(path);
}

TEST(DesktopEngine, a_message_that_does_not_fit_is_sent_only_if_told_so) {
  Engine engine([] {});
  PlanSettings settings = settingsFor(40u << 20);
  settings.window_tokens = 64;
  engine.load(settings);
  engine.wait();
  const int id = engine.state().chats.at(0).id;
  std::string text;
  for (int i = 0; i < 100; i++) {
    text += "word ";
  }
  engine.send(id, text, greedyFor(5));
  engine.wait();
  const ChatState refused = engine.state().chats.at(0);
  EXPECT_TRUE(refused.messages.empty());
  EXPECT_EQ(refused.phase, ChatPhase::kIdle);
  EXPECT_EQ(refused.refused.text, text);
  EXPECT_GE(refused.refused.tokens, 100u);
  EXPECT_LT(refused.refused.capacity, 80u);
  EXPECT_EQ(refused.cache.position, 0u);
  engine.send(id, text, greedyFor(5), /*even_if_cut=*/true);
  engine.wait();
  EXPECT_EQ(engine.state().chats.at(0).messages.size(), 2u);
  EXPECT_EQ(engine.state().chats.at(0).refused.tokens, 0u);
}

/// An engine with a test hook for state changes: called on the thread that made the change, one at a time.
class Watched {
 public:
  using Answer = std::function<void(Engine&, const AppState&)>;
  Watched() : engine_([this] { changed(); }) {}
  /// Runs until the engine is idle.
  void during(const std::function<void(Engine&)>& begin, const Answer& answer) {
    answer_ = answer;
    busy_ = false;
    begin(engine_);
    engine_.wait();
    while (busy_.exchange(true)) {
    }
  }
  Engine& engine() { return engine_; }

 private:
  void changed() {
    if (!busy_.exchange(true)) {
      answer_(engine_, engine_.state());
      busy_ = false;
    }
  }
  std::atomic<bool> busy_{true};
  Answer answer_;
  Engine engine_;
};

TEST(DesktopEngine, a_chat_that_moves_or_is_restored_takes_no_message_and_no_save) {
  const std::string path = testing::TempDir() + "desktop-moves.oriel";
  saveSnapshot(path, 4, true);
  const std::string unwanted = testing::TempDir() + "desktop-unwanted.oriel";
  std::filesystem::remove(unwanted);
  Watched watched;
  Engine& engine = watched.engine();
  PlanSettings settings = settingsFor(40u << 20);
  settings.model_path = kOtherModel;  // forces restored chats to be read again
  engine.load(settings);
  engine.wait();
  engine.send(engine.state().chats.at(0).id, "Hello!", greedyFor(5));
  engine.wait();
  int taken = 0, refused = 0;
  const auto interrupt = [&](Engine& now, const AppState& state) {
    const ChatState& chat = state.chats.back();
    if (chat.phase == ChatPhase::kMoving) {
      (now.send(chat.id, "Are you there?", greedyFor(5)) ? taken : refused)++;
      now.save(chat.id, unwanted);
    }
  };
  settings.memory_bytes = 48u << 20;
  watched.during([&](Engine& now) { now.load(settings); }, interrupt);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(engine.state().chats.back().messages.size(), 2u);
  refused = 0;
  watched.during([&](Engine& now) { now.restore(path); }, interrupt);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(taken, 0);
  EXPECT_FALSE(std::filesystem::exists(unwanted));
  EXPECT_NE(engine.state().error.find("save it when"), std::string::npos);
  ASSERT_EQ(engine.state().chats.size(), 2u);
  const ChatState restored = engine.state().chats.back();
  EXPECT_EQ(restored.messages.size(), 8u);
  EXPECT_EQ(restored.phase, ChatPhase::kIdle);
  EXPECT_TRUE(engine.send(restored.id, "Are you there?", greedyFor(5)));
  engine.wait();
  EXPECT_FALSE(engine.state().chats.back().messages.at(9).text.empty());
  std::filesystem::remove(path);
}

TEST(DesktopEngine, a_message_said_just_before_a_chat_moves_is_said_once_and_answers_stay_apart) {
  const std::string early = "Tell me a long story.", late = "What is 45 + 38?";
  const std::string path = testing::TempDir() + "desktop-once.oriel";
  for (int i = 0; i < 4; i++) {
    Watched watched;
    Engine& engine = watched.engine();
    PlanSettings settings = settingsFor(40u << 20);
    settings.chats = 3;
    engine.load(settings);
    engine.newChat();
    engine.wait();
    const int id = engine.state().chats.at(1).id;
    engine.send(id, "Hello!", greedyFor(5));
    engine.wait();
    // One while the previous chat moves, and one as soon as this one is idle again.
    std::vector<std::string> lines = {late, early};
    settings.model_path = kOtherModel;
    watched.during([&](Engine& now) { now.load(settings); },
                   [&](Engine& now, const AppState& state) {
                     const bool moves = state.chats.at(0).phase == ChatPhase::kMoving;
                     const bool moved = state.model.settings.model_path == kOtherModel;
                     if (state.chats.at(1).phase == ChatPhase::kIdle &&
                         ((lines.size() == 2 && moves) || (lines.size() == 1 && moved))) {
                       const std::string line = lines.back();
                       lines.pop_back();
                       EXPECT_TRUE(now.send(id, line, greedyFor(12)));
                     }
                   });
    const std::vector<Message> shown = engine.state().chats.at(1).messages;
    ASSERT_EQ(shown.size(), 6u);
    EXPECT_NE(shown[5].text.find("45 plus 38"), std::string::npos) << shown[5].text;

    std::filesystem::remove(path);
    engine.save(id, path);
    engine.wait();
    engine.restore(path);
    engine.wait();
    ASSERT_EQ(engine.state().chats.size(), 3u) << engine.state().error;
    int said = 0;
    const ChatState read = engine.state().chats.at(2);
    for (const Message& message : read.messages) {
      said += message.text == early ? 1 : 0;
    }
    EXPECT_LE(said, 1);
  }
  std::filesystem::remove(path);
}

TEST(DesktopEngine, a_fork_has_the_messages_that_its_session_has) {
  for (int i = 0; i < 4; i++) {
    Watched watched;
    Engine& engine = watched.engine();
    engine.load(settingsFor(40u << 20));
    engine.newChat();
    engine.wait();
    const int first = engine.state().chats.at(0).id, second = engine.state().chats.at(1).id;
    engine.send(first, "Hello!", greedyFor(5));
    engine.wait();
    bool said = false;
    watched.during(
        [&](Engine& now) {
          now.closeChat(second);
          now.fork(first);
        },
        [&](Engine& now, const AppState& state) {
          if (!said && state.chats.size() == 1) {
            said = true;
            now.send(first, "My name is Ada.", greedyFor(5));
          }
        });
    ASSERT_EQ(engine.state().chats.size(), 2u);
    EXPECT_FALSE(engine.state().chats.at(1).messages.back().text.empty()) << i;
  }
}

TEST(DesktopEngine, the_program_ends_without_reading_the_other_chats_again) {
  std::promise<void> loaded, ends;
  std::future<void> ending = ends.get_future();
  std::map<int, std::string> notes;
  Engine* made = nullptr;
  bool waited = false;
  auto engine = std::make_unique<Engine>([&] {
    if (made == nullptr) {
      return;
    }
    const AppState state = made->state();
    if (!waited && state.model.settings.model_path == kOtherModel) {
      waited = true;
      loaded.set_value();
      ending.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // ~Engine begins meanwhile
    }
    for (const ChatState& chat : state.chats) {
      notes[chat.id] = chat.note;
    }
  });
  PlanSettings settings = settingsFor(40u << 20);
  engine->load(settings);
  engine->newChat();
  engine->wait();
  for (const ChatState& chat : engine->state().chats) {
    engine->send(chat.id, "My name is Ada.", greedyFor(20));
    engine->wait();
  }
  made = engine.get();
  settings.model_path = kOtherModel;
  engine->load(settings);
  loaded.get_future().wait();
  ends.set_value();
  engine.reset();
  ASSERT_EQ(notes.size(), 2u);
  for (const auto& note : notes) {
    EXPECT_EQ(note.second.find("read again"), std::string::npos) << note.second;
  }
}

}  // namespace
}  // namespace desktop
