// Until the C++ formats go: Oriel's own templates write what they write, and are recognised as they are.
#include <gtest/gtest.h>

#include "support/own_text.h"

namespace oriel_internal::test::test_own_templates_old {
namespace {

using Messages = std::vector<ChatMessage>;

// As chat/prove.cpp tries them, and more.
const std::vector<Messages> kConversations = {
    {{"user", "  What is two and two?\n"}},
    {{"system", " Be brief.\n"}, {"user", "  What is two and two?\n"}},
    {{"user", "  What is two and two?\n"}, {"assistant", " Four.\n"}, {"user", "Und drei?"}},
    {{"system", " Be brief.\n"},
     {"user", "  What is two and two?\n"},
     {"assistant", " Four.\n"},
     {"user", "Und drei?"}},
    {{"system", " Be brief.\n"},
     {"user", "  What is two and two?\n"},
     {"assistant", "<think>\nOne more.\n</think>\n\nFive."},
     {"user", "Und drei?"},
     {"assistant", " Four.\n"}},
    {{"user", "One?"}, {"assistant", "\n\n<think>\n Hm. \n</think>\n \n Un. \n"}},
    {{"user", "One?"}, {"assistant", "Hm.\n</think>\n\n\n"}},
    {{"user", "One?"}, {"assistant", "<think>a</think>b<think>c</think>d"}, {"user", "Two?"}},
    {{"user", "One?"},
     {"assistant", "<think>\nHm.\n</think>\n\nUn. \n"},
     {"user", "Two?"},
     {"assistant", "<think>\nHm.\n</think>\n\nDeux. \n"},
     {"user", "Three?"}},
    {{"user", "One?"}, {"assistant", " <|channel>x<channel|> \n Un, <|channel>x<channel|> deux. "}},
    {{"user", "One?"}, {"assistant", "a<channel|>b<|channel>c"}, {"user", "Two?"}},
    {{"system", "Be kind. /no_think"}, {"user", "Hi"}},
    {{"system", "/think Be kind./no_think \n"},
     {"user", "Hi"},
     {"assistant", "Ho"},
     {"user", "Hi"}},
    {{"system", "/no_think"}, {"user", "Hi"}},
    {{"system", "/think "}, {"user", "Hi"}},
    {{"system", "Only this. /system_override"}, {"user", "Hi"}},
    {{"system", " <|think|> \n<|think|>\nBe brief.\n"}, {"user", "Hi"}},
    {{"system", "<|think|>"}, {"user", "Hi"}},
    {{"system", ""}, {"user", "Hi"}},
    {{"system", ""}, {"user", ""}, {"assistant", ""}, {"user", ""}},
    {{"system", "Be brief."}},
    {{"system", " "}},
    {{"system", "Be brief."}, {"assistant", "Un."}},
    {{"system", "Be brief."}, {"assistant", "Un."}, {"user", "Two?"}},
    {{"assistant", "Un."}},
    {{"assistant", "<think>\nHm.\n</think>\n\nUn. \n"}, {"user", "Two?"}},
    {{"user", "One?"}, {"system", "Be brief."}},
    {{"user", "One?"}, {"assistant", "Un."}, {"system", " Be brief.\n"}, {"user", "Two?"}},
    {{"user", "One?"}, {"user", "Two?"}},
    {{"user", "One?"}, {"assistant", "Un."}, {"assistant", "<think>\nHm.\n</think>\n\nDeux."}},
    {{"user", "One?"}, {"assistant", "Un."}, {"assistant", "Deux."}},
    {{"user", "One?"}, {"tool", "81 %"}},
    {{"user", "One?"}, {"developer", "Be formal."}, {"user", "Two?"}},
    {},
};

/// Differences that are wanted.
bool mayDiffer(const std::string& name, const Messages& messages, bool generation,
               const ChatOptions& options) {
  // As published: only the very last answer has a block without a thought.
  const size_t n = messages.size();
  if ((name == "qwen3" || name == "qwen3-thinking") && n > 1 &&
      messages[n - 2].role == "assistant" && messages[n - 1].role == "assistant") {
    return true;
  }
  // As published: told to think, the reply begins with a thought.
  return name == "minicpm5" && generation && options.thinking && options.thinking_said;
}

TEST(OwnTemplatesOld, write_what_the_formats_write) {
  size_t n_compared = 0;
  for (const std::string& name : formatNames()) {
    const OwnTemplate* const row = ownTemplateByName(name.c_str());
    ASSERT_NE(nullptr, row) << name;
    ChatTemplate chat = formatNamed(name);
    EXPECT_EQ(chat.format->thinks_if_told, row->thinks_if_told) << name;
    // Two differences are wanted in all conversations: messages may come in any order, as they may in sessions, and
    // llama3 opens a reply only if the app asks for it.
    ChatFormat format = *chat.format;
    format.alternates = false;
    chat.format = &format;
    chat.always_generates = false;
    OwnSettings own;
    if (chat.begin[0] != '\0') {
      own.bos = chat.begin;
    }
    if (chat.format->end[0] != '\0') {
      own.eos = chat.format->end;
    }
    for (const ThinkingWish wish :
         {ThinkingWish::kTemplates, ThinkingWish::kOff, ThinkingWish::kOn}) {
      own.thinking = wish;
      ChatOptions options;
      options.thinking = wish == ThinkingWish::kOn ||
                         (wish == ThinkingWish::kTemplates && !chat.format->thinks_if_told);
      options.thinking_said = wish != ThinkingWish::kTemplates;
      for (const Messages& messages : kConversations) {
        for (const bool generation : {true, false}) {
          std::vector<TextRange> literals;
          const std::string old_text = wholeText(chat, options, messages, generation, &literals);
          const OwnText own_text = ownText(row->text, messages, generation, own);
          std::string shape;
          for (const ChatMessage& one : messages) {
            shape += "[" + one.role + ": " + one.text + "]";
          }
          ++n_compared;
          if (old_text.find("<the chat format ") == 0) {
            EXPECT_EQ(ORIEL_ERROR_ARGUMENT, own_text.status.code())
                << name << shape << old_text << "\n"
                << own_text.text;
            continue;
          }
          if (mayDiffer(name, messages, generation, options)) {
            EXPECT_TRUE(own_text.status.ok()) << name << own_text.error;
            continue;
          }
          EXPECT_EQ(old_text, own_text.said()) << name << shape << generation;
          std::vector<TextRange> wanted;
          for (const TextRange& one : literals) {
            if (one.begin != one.end && !wanted.empty() && wanted.back().end == one.begin) {
              wanted.back().end = one.end;
            } else if (one.begin != one.end) {
              wanted.push_back(one);
            }
          }
          const auto cut = [](const std::string& text, const std::vector<TextRange>& ranges) {
            std::string all;
            for (const TextRange& one : ranges) {
              all += std::to_string(one.begin) + ": " +
                     text.substr(one.begin, one.end - one.begin) + "\n";
            }
            return all;
          };
          EXPECT_EQ(cut(old_text, wanted), cut(own_text.text, own_text.given)) << name << shape;
        }
      }
    }
  }
  EXPECT_GT(n_compared, 7000u);
}

TEST(OwnTemplatesOld, have_the_same_names) { EXPECT_STREQ(kChatFormatNames, kOwnTemplateNames); }

}  // namespace
}  // namespace oriel_internal::test::test_own_templates_old
