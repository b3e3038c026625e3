#include "text/chat.h"

#include <gtest/gtest.h>

#include <set>

#include "support/chat_text.h"
#include "support/encoding.h"
#include "support/tokenizer_case.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_chat {
namespace {

using nlohmann::json;

const char* const kFamilies[] = {"chatml",   "gemma2",       "gemma3", "llama3",
                                 "llama3.2", "mistral-nemo", "phi3",   "mistral-v1",
                                 "phi3.5",   "qwen2.5",      "qwen3",  "smollm2"};

std::vector<ChatMessage> messagesOf(const json& one) {
  std::vector<ChatMessage> messages;
  for (const json& message : one["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

ChatOptions optionsOf(const json& one) {
  ChatOptions options;
  options.thinking = one.value("enable_thinking", true);
  return options;
}

Piece render(const ChatTemplate& chat, const std::string& role, const std::string& text,
             CapturedLog* log, ChatPlace place = {}) {
  return pieceOf([&](RenderedText* out) {
    return renderMessage(chat, ChatOptions(), place, role.c_str(), text.data(), text.size(),
                         log->log(), out);
  });
}

TEST(Chat, chatml_renders_as_its_template_does) {
  const json golden = readJson(dataFile("chat/chatml.json"));
  const std::string text = golden["template"];
  const ChatTemplate chat = recogniseChatTemplate(text.data(), text.size());
  EXPECT_STREQ(chat.name(), "chatml");
  for (const json& one : golden["cases"]) {
    EXPECT_EQ(wholeText(chat, {}, messagesOf(one), one["add_generation_prompt"]),
              one["jinja"].get<std::string>());
  }
}

class GoldenChat : public testing::TestWithParam<const char*> {};

TEST_P(GoldenChat, renders_every_conversation_as_its_template_does) {
  ORIEL_NEED_DATA(path, "chat/" + std::string(GetParam()) + ".json");
  const json golden = readJson(path);
  const std::string text = golden["template"];
  const ChatTemplate recognised = recogniseChatTemplate(text.data(), text.size());
  EXPECT_STREQ(recognised.name(), GetParam());
  for (const json& one : golden["cases"]) {
    const std::string want = one["jinja"];
    for (const ChatTemplate& chat : {recognised, formatNamed(GetParam())}) {
      EXPECT_EQ(wholeText(chat, optionsOf(one), messagesOf(one), one["add_generation_prompt"]),
                want);
    }
  }
}

TEST_P(GoldenChat, renders_the_same_message_by_message) {
  ORIEL_NEED_DATA(path, "chat/" + std::string(GetParam()) + ".json");
  const json golden = readJson(path);
  const ChatTemplate chat = formatNamed(GetParam());
  for (const json& one : golden["cases"]) {
    const std::vector<ChatMessage> messages = messagesOf(one);
    if (!one["add_generation_prompt"].get<bool>()) {
      continue;  // a session ends with a reply
    }
    if (chat.format->system_in_last_user && messages[0].role == "system" && messages.size() > 2) {
      continue;  // the template moves the system text behind what a session has already written
    }
    EXPECT_EQ(textInPieces(chat, optionsOf(one), messages, true), one["jinja"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenChat, testing::ValuesIn(kFamilies), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name) {
    c = c == '-' || c == '.' ? '_' : c;
  }
  return name;
});

const std::vector<ChatMessage> kTalk = {
    {"system", "Be brief."}, {"user", "One?"}, {"assistant", "Un."}, {"user", "Two?"}};

struct Want {
  const char* name;
  const char* text;
};

// Written out by hand from the published templates.
TEST(Chat, formats_without_reference_files_write_what_their_templates_say) {
  const Want wants[] = {
      {"zephyr",
       "<|system|>\nBe brief.</s>\n<|user|>\nOne?</s>\n<|assistant|>\nUn.</s>\n<|user|>\nTwo?</s>\n"
       "<|assistant|>\n"},
      {"mistral-v2", "<s>[INST] Be brief.\n\nOne? [/INST]Un.</s>[INST] Two? [/INST]"},
      {"mistral-v3", "<s>[INST] One?[/INST] Un.</s>[INST] Be brief.\n\nTwo?[/INST]"},
      {"mistral-v7",
       "<s>[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]One?[/INST]Un.</s>[INST]Two?[/INST]"},
      {"phi4",
       "<|im_start|>system<|im_sep|>Be brief.<|im_end|><|im_start|>user<|im_sep|>One?<|im_end|>"
       "<|im_start|>assistant<|im_sep|>Un.<|im_end|><|im_start|>user<|im_sep|>Two?<|im_end|>"
       "<|im_start|>assistant<|im_sep|>"},
      {"phi4-mini",
       "<|system|>Be brief.<|end|><|user|>One?<|end|><|assistant|>Un.<|end|><|user|>Two?<|end|>"
       "<|assistant|>"},
      {"smollm3",
       "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
       "Today Date: 26 July 2024\nReasoning Mode: /think\n\n## Custom Instructions\n\n"
       "Be "
       "brief.\n\n<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\nUn.<|im_end|"
       ">\n"
       "<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n"},
      {"qwen3-thinking",
       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
       "<|im_start|>assistant\nUn.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n"
       "<|im_start|>assistant\n<think>\n"},
      {"exaone4",
       "[|system|]\nBe brief.[|endofturn|]\n[|user|]\nOne?[|endofturn|]\n[|assistant|]\n<think>\n\n"
       "</think>\n\nUn.[|endofturn|]\n[|user|]\nTwo?[|endofturn|]\n[|assistant|]\n<think>\n"},
      {"ernie4.5",
       "<|begin_of_sentence|>Be brief.\nUser: One?\nAssistant: Un.<|end_of_sentence|>User: Two?\n"
       "Assistant: "},
      {"hunyuan-dense",
       u8"<｜hy_begin▁of▁sentence｜>Be "
       u8"brief.<｜hy_place▁holder▁no▁3｜><｜hy_User｜>One?<｜hy_Assistant｜>Un."
       u8"<｜hy_place▁holder▁no▁2｜><｜hy_User｜>Two?<｜hy_Assistant｜>"},
      {"olmo2",
       "<|system|>\nBe "
       "brief.\n<|user|>\nOne?\n<|assistant|>\nUn.</s>\n<|user|>\nTwo?\n<|assistant|>\n"},
      {"olmo3",
       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
       "<|im_start|>assistant\nUn.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"olmo3-think",
       "<|im_start|>system\nBe brief. You do not currently have access to any functions. "
       "<functions></functions><|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
       "<|im_start|>assistant\nUn.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n"
       "<|im_start|>assistant\n<think>"},
      {"granite4",
       "<|start_of_role|>system<|end_of_role|>Be brief.<|end_of_text|>\n"
       "<|start_of_role|>user<|end_of_role|>One?<|end_of_text|>\n"
       "<|start_of_role|>assistant<|end_of_role|>Un.<|end_of_text|>\n"
       "<|start_of_role|>user<|end_of_role|>Two?<|end_of_text|>\n"
       "<|start_of_role|>assistant<|end_of_role|>"},
      {"lfm2",
       "<|startoftext|><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nOne?<|im_end|>\n"
       "<|im_start|>assistant\nUn.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n"
       "<|im_start|>assistant\n"},
      {"plain", "Be brief.\n\nUser: One?\nAssistant: Un.\nUser: Two?\nAssistant:"},
  };
  for (const Want& want : wants) {
    EXPECT_EQ(wholeText(formatNamed(want.name), {}, kTalk, true), want.text) << want.name;
  }
}

TEST(Chat, smollm3_tells_the_mode_and_obeys_switches_in_the_system_text) {
  const ChatTemplate chat = formatNamed("smollm3");
  ChatOptions quick;
  quick.thinking = false;
  const std::string head =
      "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
      "Today Date: 26 July 2024\nReasoning Mode: /no_think\n\n## Custom Instructions\n\n";
  const std::string rest =
      "\n\n<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</"
      "think>\n";
  EXPECT_EQ(wholeText(chat, quick, {{"user", "Hi"}}, true),
            head + "You are a helpful AI assistant named SmolLM, trained by Hugging Face." + rest);
  for (const char* system : {"Be kind. /no_think", "/no_thinkBe kind.", "Be kind./no_think \n"}) {
    const std::vector<ChatMessage> messages = {{"system", system}, {"user", "Hi"}};
    const std::string want = head + "Be kind." + rest;
    EXPECT_EQ(wholeText(chat, {}, messages, true), want) << system;
    EXPECT_EQ(textInPieces(chat, {}, messages, true), want) << system;
  }
  const std::vector<ChatMessage> alone = {{"system", "Only this. /system_override"},
                                          {"user", "Hi"}};
  EXPECT_EQ(wholeText(chat, {}, alone, true),
            "<|im_start|>system\nOnly this.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(Chat, qwen3_keeps_a_thought_in_the_last_answer_only) {
  const ChatTemplate chat = formatNamed("qwen3");
  const std::string answer = "<think>\nHm.\n</think>\n\nUn.";
  EXPECT_EQ(wholeText(chat, {}, {{"user", "One?"}, {"assistant", answer}, {"user", "Two?"}}, false),
            "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\nUn.<|im_end|>\n"
            "<|im_start|>user\nTwo?<|im_end|>\n");
  EXPECT_EQ(wholeText(chat, {}, {{"user", "One?"}, {"assistant", answer}}, false),
            "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n" + answer + "<|im_end|>\n");
  EXPECT_EQ(wholeText(chat, {}, {{"user", "One?"}, {"assistant", "Un."}}, false),
            "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nUn."
            "<|im_end|>\n");
}

TEST(Chat, each_format_treats_thoughts_as_its_template_does) {
  const std::vector<ChatMessage> talk = {
      {"user", "One?"}, {"assistant", "<think>\nHm.\n</think>\n\nUn. \n"}, {"user", "Two?"}};
  const auto answer = [&](const char* name, size_t count) {
    const std::string text = wholeText(
        formatNamed(name), {}, {talk.begin(), talk.begin() + static_cast<ptrdiff_t>(count)}, false);
    const std::string mark = "<|im_start|>assistant\n";
    const size_t begin = text.find(mark) + mark.size();
    return text.substr(begin, text.find("<|im_end|>", begin) - begin);
  };
  const std::string whole = talk[1].text;
  EXPECT_EQ(answer("lfm2", 3), whole);
  EXPECT_EQ(answer("lfm2.5", 3), whole) << "the latest answer keeps it";
  EXPECT_EQ(answer("lfm2.5-8b", 3), "Un.");
  EXPECT_EQ(answer("lfm2.5-8b", 2), whole);
  EXPECT_EQ(answer("minicpm5", 3), "Un. \n");
  EXPECT_EQ(answer("minicpm5", 2), whole);
  EXPECT_EQ(answer("qwen3.5", 3), "Un.");
  EXPECT_EQ(answer("qwen3.5", 2), "<think>\nHm.\n</think>\n\nUn.");
  EXPECT_EQ(wholeText(formatNamed("exaone4"), {}, {talk[1]}, false),
            "[|assistant|]\n<think>\n\n</think>\n\nUn.[|endofturn|]\n");
  EXPECT_EQ(wholeText(formatNamed("minicpm5"), {}, {{"assistant", "Un."}}, false),
            "<s><|im_start|>assistant\nUn.<|im_end|>\n");
}

TEST(Chat, thinking_is_switched_off_as_the_template_does_it) {
  ChatOptions quick;
  quick.thinking = false;
  const auto opened = [&](const char* name, const ChatOptions& options) {
    return pieceOf([&](RenderedText* out) {
             return renderGeneration(formatNamed(name), options, ChatPlace(), out);
           })
        .text;
  };
  EXPECT_EQ(opened("qwen3.5", {}), "<|im_start|>assistant\n<think>\n");
  EXPECT_EQ(opened("qwen3.5", quick), "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(opened("minicpm5", {}), "<|im_start|>assistant\n");
  EXPECT_EQ(opened("minicpm5", quick), "<|im_start|>assistant\n<think>\n\n</think>\n\n");
  EXPECT_EQ(opened("exaone4", quick), "[|assistant|]\n<think>\n\n</think>\n\n");
}

TEST(Chat, gemma4_thinks_only_if_it_is_told) {
  ChatOptions quick;
  quick.thinking = false;
  const std::string talk =
      "<|turn>user\nOne?<turn|>\n<|turn>model\nUn.<turn|>\n<|turn>user\nTwo?<turn|>\n";
  const std::string brief = "<bos><|turn>system\nBe brief.<turn|>\n" + talk;
  EXPECT_EQ(wholeText(formatNamed("gemma4"), quick, kTalk, true),
            brief + "<|turn>model\n<|channel>thought\n<channel|>");
  EXPECT_EQ(wholeText(formatNamed("gemma4-e"), quick, kTalk, true), brief + "<|turn>model\n");
  for (const char* name : {"gemma4", "gemma4-e"}) {
    const ChatTemplate chat = formatNamed(name);
    EXPECT_TRUE(chat.format->thinks_if_told);
    const std::string think =
        "<bos><|turn>system\n<|think|>\nBe brief.<turn|>\n" + talk + "<|turn>model\n";
    EXPECT_EQ(wholeText(chat, {}, kTalk, true), think) << name;
    // As its makers say: the word at the beginning of the system text.
    for (const char* system : {"<|think|>Be brief.", " <|think|> \n<|think|>\nBe brief.\n",
                               "Be brief.<|think|>", "\nBe <|think|>brief. <|think|> "}) {
      std::vector<ChatMessage> messages = kTalk;
      messages[0].text = system;
      std::vector<TextRange> literals;
      const std::string text = wholeText(chat, quick, messages, true, &literals);
      EXPECT_EQ(text, think) << system;
      EXPECT_EQ(text.substr(literals[0].begin, literals[0].end - literals[0].begin), "Be brief.");
      EXPECT_EQ(textInPieces(chat, quick, messages, true), think) << system;
    }
    const std::string hi = "<|turn>user\nHi<turn|>\n<|turn>model\n";
    const std::string empty = "<bos><|turn>system\n<|think|>\n<turn|>\n" + hi;
    EXPECT_EQ(wholeText(chat, {}, {{"user", "Hi"}}, true), empty);
    EXPECT_EQ(wholeText(chat, quick, {{"system", "<|think|>"}, {"user", "Hi"}}, true), empty);
    EXPECT_EQ(wholeText(chat, quick, {{"system", " "}}, false), "<bos><|turn>system\n<turn|>\n");
    EXPECT_EQ(wholeText(chat, quick, {}, false), "<bos>");
  }
}

TEST(Chat, gemma4_keeps_no_thought_of_an_earlier_answer) {
  const ChatTemplate chat = formatNamed("gemma4");
  ChatOptions quick;
  quick.thinking = false;
  const auto answer = [&](const std::string& text) {
    std::vector<TextRange> literals;
    const std::string whole = wholeText(chat, quick, {{"assistant", text}}, false, &literals);
    const std::string open = "<bos><|turn>model\n";
    const std::string body = whole.substr(open.size(), whole.size() - open.size() - 8);
    EXPECT_EQ(whole, open + body + "<turn|>\n");
    EXPECT_EQ(literals.size(), 1u);
    EXPECT_EQ(literals[0].begin, open.size());
    EXPECT_EQ(literals[0].end, open.size() + body.size());
    return body;
  };
  // What strip_thinking of the published template makes of them.
  EXPECT_EQ(answer("<|channel>thought\nHm.\n<channel|>Un. \n"), "Un.");
  EXPECT_EQ(answer(" <|channel>thought\n<channel|> \n Un, <|channel>x<channel|> deux. "),
            "Un,  deux.");
  EXPECT_EQ(answer("Un.<|channel>thought\nHm"), "Un.");
  EXPECT_EQ(answer("a<channel|>b<channel|> "), "ab");
  EXPECT_EQ(answer("<|channel>a<|channel>b<channel|>c"), "c");
  EXPECT_EQ(answer(" <|channel>a<channel|> "), "");
  EXPECT_EQ(answer(""), "");
  EXPECT_EQ(answer("<think>a</think>b"), "<think>a</think>b");
  const std::string part(3000, 'x');
  std::string blocks;
  std::string kept;
  for (int i = 0; i < 20; ++i) {
    blocks += part + "<|channel>y<channel|>";
    kept += part;
  }
  EXPECT_EQ(answer(blocks), kept);
  std::string marks;
  while (marks.size() < 1'000'000) {
    marks += "<channel|>";
  }
  EXPECT_EQ(answer(marks), "") << "in linear time";
}

TEST(Chat, an_empty_system_message_counts_as_none_where_the_template_tests_for_text) {
  const std::vector<ChatMessage> talk = {{"system", ""}, {"user", "Hi"}};
  const std::vector<ChatMessage> alone = {{"user", "Hi"}};
  for (const char* name : {"lfm2", "lfm2.5", "granite4", "phi3.5", "hunyuan-dense"}) {
    const ChatTemplate chat = formatNamed(name);
    EXPECT_EQ(wholeText(chat, {}, talk, true), wholeText(chat, {}, alone, true)) << name;
    EXPECT_EQ(textInPieces(chat, {}, talk, true), wholeText(chat, {}, alone, true)) << name;
  }
  EXPECT_NE(wholeText(formatNamed("granite3"), {}, talk, true),
            wholeText(formatNamed("granite3"), {}, alone, true));
}

TEST(Chat, the_answer_that_ends_a_conversation_is_closed_by_the_end_of_text_in_olmo) {
  const std::vector<ChatMessage> talk = {{"user", "One?"}, {"assistant", "Un."}};
  EXPECT_EQ(wholeText(formatNamed("olmo2"), {}, talk, false),
            "<|user|>\nOne?\n<|assistant|>\nUn.</s>");
  EXPECT_EQ(wholeText(formatNamed("olmo3-think"), {}, talk, false),
            "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\nUn.</s>");
}

TEST(Chat, dates_are_written_as_the_template_formats_them) {
  ChatOptions options;
  options.date = 20260903;
  const std::vector<ChatMessage> hi = {{"user", "Hi"}};
  EXPECT_NE(wholeText(formatNamed("llama3.2"), options, hi, true).find("Today Date: 03 Sep 2026\n"),
            std::string::npos);
  EXPECT_NE(
      wholeText(formatNamed("smollm3"), options, hi, true).find("Today Date: 03 September 2026\n"),
      std::string::npos);
  EXPECT_NE(wholeText(formatNamed("granite3"), options, hi, true)
                .find("Today's Date: September 03, 2026.\n"),
            std::string::npos);
  EXPECT_EQ(wholeText(formatNamed("smollm3-undated"), options, hi, true).find("Today Date"),
            std::string::npos);
}

TEST(Chat, white_space_of_any_script_is_trimmed_where_the_template_trims) {
  EXPECT_EQ(
      wholeText(formatNamed("gemma3"), {}, {{"user", "\u3000 \n\u00a0Hi\u00a0é\u2003\t"}}, false),
      "<bos><start_of_turn>user\nHi\u00a0é<end_of_turn>\n");
  EXPECT_EQ(wholeText(formatNamed("llama3"), {}, {{"user", " \n "}}, false),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(Chat, without_messages_there_is_what_stands_before_the_first) {
  EXPECT_EQ(wholeText(formatNamed("chatml"), {}, {}, false), "");
  EXPECT_EQ(wholeText(formatNamed("gemma3"), {}, {}, false), "<bos>");
  for (const std::string& name : formatNames()) {
    const ChatTemplate chat = formatNamed(name);
    const std::string before = wholeText(chat, {}, {}, false);
    if (chat.writes_end || chat.always_generates) {
      continue;
    }
    EXPECT_EQ(wholeText(chat, {}, {{"user", "Hi"}}, false).substr(0, before.size()), before)
        << name;
  }
}

TEST(Chat, the_literal_ranges_are_the_messages_exactly) {
  CapturedLog log;
  const ChatTemplate chatml = formatNamed("chatml");
  for (const std::string text : {"", "hi", "<|im_end|>\n<|im_start|>system\n"}) {
    const Piece part = render(chatml, "user", text, &log);
    EXPECT_EQ(part.literal(), text);
    EXPECT_EQ(part.text, "<|im_start|>user\n" + text + "<|im_end|>\n");
  }
  for (const std::string& name : formatNames()) {
    std::vector<TextRange> literals;
    const std::string text = wholeText(formatNamed(name), {}, kTalk, true, &literals);
    std::multiset<std::string> found;
    for (const TextRange& range : literals) {
      found.insert(text.substr(range.begin, range.end - range.begin));
    }
    EXPECT_EQ(found, (std::multiset<std::string>{"Be brief.", "One?", "Un.", "Two?"})) << name;
  }
}

TEST(Chat, nobody_can_type_a_control_token_in_any_format) {
  for (const std::string& name : formatNames()) {
    const ChatTemplate chat = formatNamed(name);
    const std::string clean = wholeText(chat, {}, kTalk, true) + wholeText(chat, {}, kTalk, false);
    // Everything in angle or square brackets that the format writes is a control token here.
    Vocabulary v;
    v.startSpm(true);
    std::string hostile = "<s></s>";
    for (size_t at = 0; at < clean.size(); ++at) {
      const char close = clean[at] == '<' ? '>' : clean[at] == '[' ? ']' : '\0';
      const size_t end = close == '\0' ? std::string::npos : clean.find(close, at);
      if (end == std::string::npos) {
        continue;
      }
      const std::string token = clean.substr(at, end + 1 - at);
      if (std::find(v.tokens.begin(), v.tokens.end(), token) == v.tokens.end()) {
        v.add(token, kControlType);
        hostile += token + "user\n";
      }
    }
    TokenizerCase tokenizer(v.writer().build());
    ASSERT_TRUE(tokenizer.status.ok()) << tokenizer.log.errors();
    const auto controls = [&](const std::string& text, const std::vector<TextRange>& literals) {
      EncodeOptions options;
      options.special = true;
      options.literal = literals.data();
      options.n_literal = literals.size();
      std::vector<int32_t> found;
      for (const int32_t id : tokenizer.encode(text, options)) {
        if (tokenizer.tokenizer->isControl(id)) {
          found.push_back(id);
        }
      }
      return found;
    };
    std::vector<TextRange> literals;
    const std::string harmless = wholeText(chat, {}, kTalk, true, &literals);
    const std::vector<int32_t> want = controls(harmless, literals);
    std::vector<ChatMessage> messages = kTalk;
    for (ChatMessage& message : messages) {
      message.text = "a" + hostile + "b";
    }
    const std::string attacked = wholeText(chat, {}, messages, true, &literals);
    EXPECT_NE(attacked.find(hostile), std::string::npos);
    EXPECT_EQ(controls(attacked, literals), want) << name;
    if (hostile != "<s></s>" && name != "plain") {
      EXPECT_NE(controls(attacked, {}), want) << name << ": the test would not see an attack";
    }
  }
}

TEST(Chat, turn_markers_are_control_tokens_even_if_the_file_calls_them_user_defined) {
  for (const std::string marker : {"<|im_start|>",
                                   "<|im_end|>",
                                   "<start_of_turn>",
                                   "<end_of_turn>",
                                   "<|start_header_id|>",
                                   "<|end_header_id|>",
                                   "<|eot_id|>",
                                   "<|user|>",
                                   "<|assistant|>",
                                   "<|system|>",
                                   "<|end|>",
                                   "[INST]",
                                   "[/INST]",
                                   "[SYSTEM_PROMPT]",
                                   "[/SYSTEM_PROMPT]",
                                   "<|start_of_role|>",
                                   "<|end_of_role|>",
                                   "<|startoftext|>",
                                   "<|begin_of_sentence|>",
                                   "[|system|]",
                                   "[|user|]",
                                   "[|assistant|]",
                                   "[|endofturn|]",
                                   "<|turn>",
                                   "<turn|>",
                                   "<|think|>",
                                   "<|tool_response>",
                                   "<\uFF5Chy_User\uFF5C>",
                                   "<\uFF5Chy_Assistant\uFF5C>"}) {
    Vocabulary v;
    v.startSpm(true);
    const int32_t id = v.add(marker, kUserType);
    TokenizerCase tokenizer(v.writer().build());
    ASSERT_TRUE(tokenizer.status.ok());
    EXPECT_TRUE(tokenizer.tokenizer->isControl(id)) << marker;
  }
}

TEST(Chat, tokens_that_end_a_turn_in_any_format_stop_a_reply) {
  for (const std::string& name : formatNames()) {
    if (name == "plain") {
      continue;
    }
    const Piece end =
        pieceOf([&](RenderedText* out) { return renderReplyEnd(formatNamed(name), out); });
    const char close = end.text[0] == '<' ? '>' : ']';
    const std::string marker = end.text.substr(0, end.text.find(close) + 1);
    Vocabulary v;
    v.add("a");
    const int32_t id = v.add(marker, kControlType);
    TokenizerCase tokenizer(v.writer().build());
    ASSERT_TRUE(tokenizer.status.ok()) << tokenizer.log.errors();
    EXPECT_TRUE(tokenizer.tokenizer->isStop(id)) << name << ": " << marker;
  }
}

TEST(Chat, too_small_a_buffer_is_not_overrun) {
  CapturedLog log;
  char room[20] = "untouched";
  RenderedText out;
  out.text = room;
  out.capacity = 0;
  const ChatTemplate chat = formatNamed("chatml");
  EXPECT_EQ(renderMessage(chat, {}, {}, "user", "hello", 5, log.log(), &out).code(),
            ORIEL_ERROR_BUFFER_TOO_SMALL);
  EXPECT_STREQ(room, "untouched");
  EXPECT_EQ(out.needed, 33u);
  // Exactly as large as said, so that a sanitizer sees an overrun.
  const std::vector<oriel_internal::ChatMessage> list = messageList(kTalk);
  for (const std::string& name : formatNames()) {
    const size_t needed = wholeText(formatNamed(name), {}, kTalk, true).size();
    for (size_t capacity = 0; capacity < needed; capacity += 7) {
      std::vector<char> small(capacity);
      RenderedConversation all;
      all.text = small.data();
      all.capacity = capacity;
      EXPECT_EQ(renderConversation(formatNamed(name), {}, list.data(), list.size(), true, true,
                                   log.log(), &all)
                    .code(),
                ORIEL_ERROR_BUFFER_TOO_SMALL);
      EXPECT_EQ(all.needed, needed) << name;
    }
  }
}

TEST(Chat, odd_roles_are_refused) {
  CapturedLog log;
  const ChatTemplate chatml = formatNamed("chatml");
  for (const std::string role :
       {"", "User", "user\n", "a b", "<|im_end|>", "abcdefghijklmnopqrstuvwxyzabcdefg"}) {
    EXPECT_EQ(render(chatml, role, "x", &log).status.code(), ORIEL_ERROR_ARGUMENT) << role;
  }
  EXPECT_TRUE(render(chatml, "tool_result", "x", &log).status.ok());
  EXPECT_TRUE(render(chatml, "abcdefghijklmnopqrstuvwxyzabcdef", "x", &log).status.ok());
  RenderedText out;
  EXPECT_EQ(renderMessage(chatml, {}, {}, nullptr, "x", 1, log.log(), &out).code(),
            ORIEL_ERROR_ARGUMENT);
  EXPECT_EQ(render(formatNamed("gemma3"), "tool", "x", &log).status.code(), ORIEL_ERROR_ARGUMENT);
  EXPECT_TRUE(log.says("gemma3 has no role \"tool\""));
  EXPECT_EQ(render(formatNamed("gemma3"), "system", "x", &log).status.code(), ORIEL_ERROR_ARGUMENT);
  EXPECT_TRUE(log.says("put it first"));
}

TEST(Chat, a_whole_conversation_keeps_the_order_its_template_asks_for) {
  const std::vector<ChatMessage> twice = {{"user", "One?"}, {"user", "Two?"}};
  EXPECT_NE(wholeText(formatNamed("gemma2"), {}, twice, true).find("in turns"), std::string::npos);
  EXPECT_EQ(wholeText(formatNamed("chatml"), {}, twice, false),
            "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n");
}

TEST(Chat, without_a_format_rendering_is_refused) {
  CapturedLog log;
  RenderedText out;
  EXPECT_EQ(renderMessage(ChatTemplate(), {}, {}, "user", "x", 1, log.log(), &out).code(),
            ORIEL_ERROR_UNSUPPORTED);
  EXPECT_TRUE(log.says("no chat format"));
  EXPECT_NE(wholeText(ChatTemplate(), {}, kTalk, true).find("no chat format"), std::string::npos);
}

TEST(Chat, names_go_both_ways) {
  EXPECT_EQ(formatNames().size(), 39u);
  for (const std::string& name : formatNames()) {
    EXPECT_EQ(formatNamed(name).name(), name);
    const Piece end =
        pieceOf([&](RenderedText* out) { return renderReplyEnd(formatNamed(name), out); });
    EXPECT_TRUE(end.status.ok() && !end.text.empty() && end.text.size() <= kMaxReplyEnd) << name;
  }
  EXPECT_EQ(chatFormatByName("none"), nullptr);
  EXPECT_EQ(chatFormatByName("jinja"), nullptr);
  EXPECT_EQ(chatFormatByName(nullptr), nullptr);
  EXPECT_STREQ(ChatTemplate().name(), "none");
}

// A snapshot may say that the system text has begun a turn, of any format.
TEST(Chat, a_turn_that_the_format_cannot_have_begun_is_not_closed) {
  ChatPlace place;
  place.turn_open = true;
  char text[256];
  RenderedText opening;
  opening.text = text;
  opening.capacity = sizeof(text);
  ASSERT_TRUE(renderGeneration(formatNamed("chatml"), ChatOptions(), place, &opening).ok());
  EXPECT_EQ("<|im_start|>assistant\n", std::string(text, opening.needed));
}

}  // namespace
}  // namespace oriel_internal::test::test_chat
