// Replies of published models with reference results, split at every byte.
#include <gtest/gtest.h>

#include <string>

#include "support/encoding.h"
#include "support/files.h"
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
