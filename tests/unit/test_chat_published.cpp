// Formats against the published templates themselves, which are read where they are and not copied.
#include <gtest/gtest.h>

#include "support/chat_text.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_chat_published {
namespace {

using nlohmann::json;

struct Published {
  const char* file;
  const char* format;
};

const Published kPublished[] = {
    {"HuggingFaceTB-SmolLM3-3B", "smollm3-undated"},
    {"LFM2-8B-A1B", "lfm2"},
    {"LFM2.5-8B-A1B", "lfm2.5-8b"},
    {"LFM2.5-Instruct", "lfm2.5"},
    {"Mistral-Small-3.2-24B-Instruct-2506", "mistral-v7"},
    {"Phi-4-mini-instruct", "phi4-mini"},
    {"Qwen-Qwen2.5-7B-Instruct", "qwen2.5"},
    {"Qwen-Qwen3-0.6B", "qwen3"},
    {"Qwen3-Coder", "qwen3-coder"},
    {"Qwen3.5-4B", "qwen3.5"},
    {"chat-chatml", "chatml"},
    {"chat-gemma3", "gemma3"},
    {"chat-llama3", "llama3"},
    {"chat-mistral-v1", "mistral-v1"},
    {"chat-smollm2", "smollm2"},
    {"google-gemma-2-2b-it", "gemma2"},
    {"google-gemma-4-31B-it", "gemma4"},
    {"google-gemma-4-31B-it-interleaved", "gemma4"},
    {"ibm-granite-granite-3.3-2B-Instruct", "granite3.3"},
    {"ibm-granite-granite-4.0", "granite4"},
    {"ibm-granite-granite-4.1", "granite4"},
    {"meta-llama-Llama-3.2-3B-Instruct", "llama3.2"},
    {"microsoft-Phi-3.5-mini-instruct", "phi3.5"},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral-v7"},
    {"mistralai-Mistral-Nemo-Instruct-2407", "mistral-nemo"},
    {"openbmb-MiniCPM5-1B", "minicpm5"},
};

/// The template as a file has it, with its own BOS and EOS.
ChatTemplate chatOf(const json& published) {
  Vocabulary v;
  const int32_t bos = v.add(published["bos_token"].get<std::string>(), kControlType);
  const int32_t eos = v.add(published["eos_token"].get<std::string>(), kControlType);
  GgufWriter file = v.writer();
  file.addUint32("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
  file.addUint32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
  file.addString("tokenizer.chat_template", published["template"].get<std::string>());
  const std::vector<uint8_t> bytes = file.build();
  auto opened = std::make_unique<GgufFile>();
  EXPECT_TRUE(opened->open(bytes.data(), bytes.size(), Log()).ok());
  return recogniseChat(*opened);
}

/// Only messages of the three roles with nothing but text, and a template that renders them.
bool isPlain(const json& one) {
  if (!one["tools"].is_null() || one["messages"].empty() || !one.contains("expected") ||
      !one["expected"].is_string() || one.contains("context")) {
    return false;
  }
  for (const json& message : one["messages"]) {
    const std::string role = message["role"];
    if (message.size() != 2 || !message["content"].is_string() ||
        (role != "system" && role != "user" && role != "assistant")) {
      return false;
    }
  }
  return true;
}

/// The day on which the references were made, as the one template wrote it that tells it in numbers.
uint32_t dayOfReferences() {
  const std::string path = dataFile("templates/Mistral-Small-3.2-24B-Instruct-2506.json");
  const std::string mark = "The current date is ";
  const json published = readJson(path);
  const std::string text = published["cases"][0]["expected"];
  const std::string day = text.substr(text.find(mark) + mark.size(), 10);
  return static_cast<uint32_t>(std::stoul(day.substr(0, 4) + day.substr(5, 2) + day.substr(8, 2)));
}

class PublishedChat : public testing::TestWithParam<Published> {};

TEST_P(PublishedChat, renders_plain_conversations_as_its_template_does) {
  ORIEL_NEED_DATA(path, "templates/" + std::string(GetParam().file) + ".json");
  const json published = readJson(path);
  const ChatTemplate chat = chatOf(published);
  ASSERT_STREQ(chat.name(), GetParam().format);
  size_t n_compared = 0;
  for (const json& one : published["cases"]) {
    if (!isPlain(one)) {
      continue;
    }
    ChatOptions options;
    options.date = dayOfReferences();
    const json& thinking = one["enable_thinking"];
    options.thinking = thinking.is_null() ? !chat.format->thinks_if_told : thinking.get<bool>();
    if (thinking == true && std::string(chat.name()) == "minicpm5") {
      continue;  // here thinking is left to the model unless it is switched off
    }
    std::vector<ChatMessage> messages;
    bool dropped = false;
    for (const json& message : one["messages"]) {
      dropped = dropped || (!messages.empty() && message["role"] == "system" &&
                            chat.format->later_system.open == nullptr);
      messages.push_back({message["role"], message["content"]});
    }
    if (dropped) {
      continue;  // the template drops the system message without a word; here it is refused
    }
    EXPECT_EQ(wholeText(chat, options, messages, one["add_generation_prompt"]),
              one["expected"].get<std::string>())
        << one["name"];
    ++n_compared;
  }
  EXPECT_GE(n_compared, 6u);
}

INSTANTIATE_TEST_SUITE_P(All, PublishedChat, testing::ValuesIn(kPublished),
                         [](const auto& instance) {
                           std::string name = instance.param.file;
                           for (char& c : name) {
                             c = c == '-' || c == '.' ? '_' : c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_chat_published
