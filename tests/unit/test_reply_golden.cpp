// Replies of published models with reference results, split at every byte.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/reply.h"

namespace oriel_internal::test::test_reply_golden {
namespace {

using nlohmann::json;

struct Format {
  const char* format;
  const char* chat_template;  ///< of a model that writes it; null: none
};

const Format kFormats[] = {
    {"bare-pythonic", "chat-gemma3"},
    {"functools", "vllm-phi4-mini"},
    {"gemma4", "google-gemma-4-31B-it"},
    {"granite-3-list", "ibm-granite-granite-3.3-2B-Instruct"},
    {"json-in-tool_call-tags", "Qwen-Qwen3-0.6B"},
    {"lfm2-pythonic", "LFM2.5-Instruct"},
    {"llama3-json", "meta-llama-Llama-3.2-3B-Instruct"},
    {"minicpm5-xml", "openbmb-MiniCPM5-1B"},
    {"mistral-args", "mistralai-Ministral-3-14B-Reasoning-2512"},
    {"mistral-nemo-list", "mistralai-Mistral-Nemo-Instruct-2407"},
    {"mistral-small-3.2", "Mistral-Small-3.2-24B-Instruct-2506"},
    {"nemotron-nano-2", "NVIDIA-Nemotron-Nano-v2"},
    {"phi4-mini", "Phi-4-mini-instruct"},
    {"qwen-xml", "Qwen3.5-4B"},
};

class ReplyGolden : public ::testing::TestWithParam<Format> {};

json toolsOf(const json& golden) {
  json tools = json::array();
  for (const auto& [name, parameters] : golden["tools"].items()) {
    tools.push_back(
        {{"type", "function"}, {"function", {{"name", name}, {"parameters", parameters}}}});
  }
  return tools;
}

void expectMeaning(const json& example, const ReadReply& read) {
  EXPECT_EQ(example["content"], read.text);
  EXPECT_EQ(example.value("reasoning", ""), read.thought);
  ASSERT_EQ(example["calls"].size(), read.calls.size());
  for (size_t i = 0; i < read.calls.size(); ++i) {
    EXPECT_EQ(example["calls"][i]["name"], read.calls[i].name);
    EXPECT_EQ(example["calls"][i]["arguments"], json::parse(read.calls[i].arguments));
    EXPECT_TRUE(read.calls[i].ended);
  }
}

TEST_P(ReplyGolden, every_reply_has_its_meaning_however_it_is_cut) {
  ORIEL_NEED_DATA(golden_path, std::string("tool_calls/") + GetParam().format + ".json");
  ORIEL_NEED_DATA(template_path, std::string("templates/") + GetParam().chat_template + ".json");
  const json golden = readJson(golden_path);
  const std::string text = readJson(template_path)["template"];
  const Tools tools(toolsOf(golden));
  for (const ReplyForms forms : {formsOfTemplate(text.data(), text.size()), formsOfAnything()}) {
    for (const json& example : golden["examples"]) {
      SCOPED_TRACE(example["name"].get<std::string>() + ": " +
                   example["output"].get<std::string>());
      ReplySettings settings;
      settings.forms = forms;
      settings.tools = tools.value();
      settings.inside_thought =
          example.contains("reasoning") && !golden["generation_prompt_may_end_with"].is_null();
      const ReadReply read = readReply(settings, example["output"]);
      if (!example.value("incomplete", false)) {
        expectMeaning(example, read);
        continue;
      }
      for (const ReadCall& call : read.calls) {
        EXPECT_FALSE(call.ended);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ReplyGolden, ::testing::ValuesIn(kFormats), [](const auto& one) {
  std::string name = one.param.format;
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
});

}  // namespace
}  // namespace oriel_internal::test::test_reply_golden

namespace oriel_internal::test::test_reply_fuzz {

// Replies made of fragments of marks: any split gives the same result, and arguments are JSON.

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

namespace oriel_internal::test::test_streaming_golden {

// The committed logits of a sliding window against the float64 pass that they came from.

namespace {

TEST(StreamingGolden, is_what_streaming_llm_gives_in_float64) {
  const nlohmann::json file = readJson(ORIEL_TEST_DATA "/streaming/llama-mqa.json");
  const std::string model = ORIEL_TEST_DATA "/models/" + file["model"].get<std::string>() + ".gguf";
  const std::vector<int32_t> ids = file["ids"];
  ASSERT_GE(file["runs"].size(), 4u);
  for (const nlohmann::json& run : file["runs"]) {
    std::map<size_t, std::vector<float>> wanted;
    for (const nlohmann::json& at : run["logits"]) {
      wanted[at["token"]] = base64As<float>(at["logits_f32_b64"]);
    }
    ASSERT_EQ(1u, wanted.count(ids.size() - 1));
    Float64Model reference(model);
    for (size_t t = 0; t < ids.size(); ++t) {
      const std::vector<double> row = reference.step(ids[t], run["sinks"], run["window"]);
      if (wanted.count(t) != 0) {
        EXPECT_LT(relativeL2(wanted[t], row), 1e-6) << "token " << t << " of " << run["sinks"];
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_streaming_golden
