// Replies made of fragments of marks: any split gives the same result, and arguments are JSON.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/reply.h"

namespace oriel_internal::test::test_reply_fuzz {
namespace {

std::string randomReply(std::mt19937* random) {
  static const char* const kBits[] = {" ",
                                      "\n",
                                      "a",
                                      "f",
                                      "\"",
                                      "'",
                                      "\\",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "(",
                                      ")",
                                      ",",
                                      ":",
                                      ";",
                                      "=",
                                      "<",
                                      ">",
                                      "1",
                                      "-2.5",
                                      "null",
                                      "True",
                                      "name",
                                      "```",
                                      "```json\n",
                                      "\"name\": \"f\"",
                                      "\"arguments\": {",
                                      "\"parameters\": {\"a\": ",
                                      "{\"name\": \"f\", ",
                                      "é",
                                      "🙂",
                                      "\\u00e9",
                                      "\\ud83d",
                                      "<![CDATA[",
                                      "]]>",
                                      "f(a=",
                                      "<|\"|>",
                                      "all\n",
                                      " to=x",
                                      "\xE6",
                                      "]<]minimax[>["};
  constexpr size_t kCount = sizeof(kBits) / sizeof(kBits[0]);
  std::string text;
  const size_t bits = 1 + (*random)() % 40;
  for (size_t i = 0; i < bits; ++i) {
    const uint32_t what = (*random)() % 4;
    if (what == 0) {
      const Mark& mark = kMarks[(*random)() % kMarkCount];
      text += mark.text;
    } else if (what == 1 && (*random)() % 2 == 0) {
      const Mark& mark = kMarks[(*random)() % kMarkCount];
      text += mark.value_end != nullptr  ? mark.value_end
              : mark.open_end != nullptr ? mark.open_end
                                         : std::string(mark.text).substr(0, (*random)() % 9);
    } else {
      text += kBits[(*random)() % kCount];
    }
  }
  return text;
}

/// A reply of one family with a piece lost or doubled.
std::string damagedReply(std::mt19937* random) {
  static const char* const kReplies[] = {
      "<think>a</think>\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
      "\"b\"}}\n</tool_call>",
      "<tool_call>\n<function=f>\n<parameter=a>\n[1, {\"b\": "
      "2}]\n</parameter>\n</function>\n</tool_call>",
      "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
      "[TOOL_CALLS]f[CALL_ID]x[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
      "<|tool_call_start|>[f(a='b', c=[1, None]), g()]<|tool_call_end|>",
      "<|channel>thought\nx<channel|><|tool_call>call:f{a:<|\"|>b<|\"|>,c:[1,{d:2}]}<tool_call|>",
      "<function name=\"f\"><param name=\"a\"><![CDATA[<]]></param></function>",
      "{\"name\": \"f\", \"parameters\": {\"a\": 1}}; {\"name\": \"g\", \"parameters\": {}}",
      "[f(a=1), g(b='x')]",
      "functools[{\"arguments\": {\"a\": 1}, \"name\": \"f\"}, {\"name\": \"g\"}]",
      "<|tool_call|>[{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}]<|/tool_call|>",
      "Action: ```json\n[{\"tool_name\": \"f\", \"parameters\": {}}]\n```"};
  std::string text = kReplies[(*random)() % (sizeof(kReplies) / sizeof(kReplies[0]))];
  const size_t at = (*random)() % text.size();
  const size_t count = (*random)() % 6;
  switch ((*random)() % 3) {
    case 0:
      text.erase(at, count);
      break;
    case 1:
      text.insert(at, text.substr((*random)() % text.size(), count));
      break;
    default:
      text[at] = static_cast<char>((*random)() % 128);
  }
  return text;
}

void expectOneMeaning(const std::string& text, std::mt19937* random) {
  ReplySettings settings;
  switch ((*random)() % 3) {
    case 0:
      settings.forms = formsOfAnything();
      break;
    case 1:
      settings.forms = ~ReplyForms{0};
      break;
    default:
      settings.forms = (*random)();
  }
  settings.inside_thought = (*random)() % 4 == 0;
  settings.calls = (*random)() % 8 != 0;
  const ReadReply whole = readPieces(settings, {text});
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = 1 + (*random)() % 7;
    pieces.push_back(text.substr(at, bytes));
    at += bytes;
  }
  ASSERT_EQ(whole, readPieces(settings, pieces)) << ::testing::PrintToString(text);
  for (const ReadCall& call : whole.calls) {
    EXPECT_FALSE(call.name.empty());
    if (call.ended && text.find('\xE6') == std::string::npos) {
      ASSERT_TRUE(nlohmann::json::accept(call.arguments))
          << call.arguments << " of " << ::testing::PrintToString(text);
      EXPECT_EQ('{', call.arguments[0]);
    }
  }
}

TEST(ReplyFuzz, bits_of_marks_mean_the_same_however_they_are_cut) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000 && !HasFatalFailure(); ++i) {
    expectOneMeaning(randomReply(&random), &random);
  }
}

TEST(ReplyFuzz, damaged_replies_mean_the_same_however_they_are_cut) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000 && !HasFatalFailure(); ++i) {
    expectOneMeaning(damagedReply(&random), &random);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_reply_fuzz
