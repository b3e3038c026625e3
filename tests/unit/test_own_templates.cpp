// Oriel's own chat templates: against published ones, read in place, and against recorded texts.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "chat/chat_template.h"
#include "chat/turn.h"
#include "support/captured_log.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/jinja_template.h"
#include "support/timing.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::test::test_own_templates {
namespace {

using nlohmann::json;

std::vector<ChatMessage> messagesOf(const json& one) {
  std::vector<ChatMessage> messages;
  for (const json& message : one["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

ThinkingWish wishOf(const json& one) {
  const json wish = one.value("enable_thinking", json());
  return wish.is_null() ? ThinkingWish::kTemplates
         : wish == true ? ThinkingWish::kOn
                        : ThinkingWish::kOff;
}

// The texts were recorded when C++ code wrote the same.
TEST(OwnTemplates, write_what_is_recorded) {
  std::map<std::string, size_t> cases;
  for (const json& one : readJson(dataFile("chat/own_templates.json"))) {
    OwnSettings own;
    own.thinking = wishOf(one);
    for (const auto& [name, expected] : one["expected"].items()) {
      const OwnTemplate* const row = ownTemplateByName(name.c_str());
      ASSERT_NE(nullptr, row) << name;
      EXPECT_EQ(expected.get<std::string>(),
                ownText(row->text, messagesOf(one), one["add_generation_prompt"], own).said())
          << name << one["messages"];
      ++cases[name];
    }
  }
  for (const OwnTemplate* row : allRows()) {
    EXPECT_GE(cases[row->name], 2u) << row->name;
  }
}

const std::vector<ChatMessage> kTalk = {
    {"system", "Be brief."}, {"user", "One?"}, {"assistant", "Un."}, {"user", "Two?"}};

TEST(OwnTemplates, keep_messages_apart_from_their_own_text) {
  for (const OwnTemplate* row : allRows()) {
    const OwnText written = ownText(row->text, kTalk, true);
    std::multiset<std::string> given;
    for (const TextRange& range : written.given) {
      given.insert(written.text.substr(range.begin, range.end - range.begin));
    }
    EXPECT_EQ((std::multiset<std::string>{"Be brief.", "One?", "Un.", "Two?"}), given) << row->name;
  }
}

TEST(OwnTemplates, refuse_messages_that_have_no_place) {
  const auto said = [](const char* name, const std::vector<ChatMessage>& messages) {
    return ownText(ownTemplateByName(name)->text, messages, true).said();
  };
  const std::string refuses = "<the chat template refuses this conversation: this format has no ";
  const std::vector<ChatMessage> tool = {{"user", "One?"}, {"tool", "81 %"}};
  EXPECT_EQ(refuses + "role \"tool\": use \"user\" or \"assistant\">", said("qwen2.5", tool));
  EXPECT_EQ(
      "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>tool\n81 %<|im_end|>\n"
      "<|im_start|>assistant\n",
      said("chatml", tool));
  EXPECT_EQ(refuses + "place for a later system message: put it first>",
            said("gemma3", {{"user", "One?"}, {"system", "Be brief."}}));
}

TEST(OwnTemplates, are_found_by_name_and_by_vocabulary) {
  EXPECT_EQ(39u, allRows().size());
  EXPECT_EQ(nullptr, ownTemplateByName("none"));
  EXPECT_EQ(nullptr, ownTemplateByName(nullptr));
  const auto ofVocabulary = [](const Vocabulary& v) {
    const std::vector<uint8_t> bytes = v.writer().build();
    GgufFile file;
    EXPECT_TRUE(file.open(bytes.data(), bytes.size(), Log()).ok());
    return ownTemplateOfVocabulary(file);
  };
  Vocabulary v;
  v.add("<|im_start|>", kControlType);
  v.add("<|im_end|>", kUserType);
  EXPECT_EQ(ownTemplateByName("chatml"), ofVocabulary(v));
  v.types[1] = kNormalType;
  EXPECT_EQ(nullptr, ofVocabulary(v));
}

TEST(OwnTemplates, write_control_tokens_that_cannot_be_typed) {
  for (const OwnTemplate* row : allRows()) {
    const std::string name = row->name;
    const std::string clean =
        ownText(row->text, kTalk, true).said() + ownText(row->text, kTalk, false).said();
    // All format marks in angle or square brackets are control tokens here.
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
    const OwnText harmless = ownText(row->text, kTalk, true);
    const std::vector<int32_t> want = controls(harmless.text, harmless.given);
    std::vector<ChatMessage> messages = kTalk;
    for (ChatMessage& message : messages) {
      message.text = "a" + hostile + "b";
    }
    const OwnText attacked = ownText(row->text, messages, true);
    EXPECT_NE(attacked.text.find(hostile), std::string::npos);
    EXPECT_EQ(want, controls(attacked.text, attacked.given)) << name;
    if (hostile != "<s></s>" && name != "plain") {
      EXPECT_NE(want, controls(attacked.text, {})) << name << ": the test would not see an attack";
    }
  }
}

TEST(OwnTemplates,
     write_turn_markers_that_are_control_tokens_even_if_the_file_calls_them_user_defined) {
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

TEST(OwnTemplates, end_a_reply_with_a_token_that_stops_it) {
  for (const OwnTemplate* row : allRows()) {
    if (row == ownTemplateByName("plain")) {
      continue;
    }
    TemplateSettings settings;
    settings.text = row->text;
    settings.eos = "</s>";
    LearnedTemplate learned;
    ASSERT_TRUE(learnTemplate(settings, {}, Log(), defaultAllocator(), &learned).ok());
    const JsonText end = learned.ends.of(Role::kAssistant);
    const std::string closing(end.data, end.bytes);
    ASSERT_NE("", closing) << row->name;
    const std::string marker = closing.substr(0, closing.find(closing[0] == '<' ? '>' : ']') + 1);
    Vocabulary v;
    v.add("a");
    const int32_t id = v.add(marker, kControlType);
    TokenizerCase tokenizer(v.writer().build());
    ASSERT_TRUE(tokenizer.status.ok()) << tokenizer.log.errors();
    EXPECT_TRUE(tokenizer.tokenizer->isStop(id)) << row->name << ": " << marker;
  }
}

/// The day on which the references were made.
constexpr uint32_t kDayOfReferences = 20261122;

/// Only text messages of the three roles, and a template that renders them.
bool isPlain(const json& one) {
  if (!one["tools"].is_null() || one["messages"].empty() || !one.contains("expected") ||
      one.contains("context")) {
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

/// Conversations in which a published template differs from its row.
enum class Differs : uint8_t {
  kNowhere,
  kEverywhere,  ///< another format, or another default, that shares the row's markers: the model's own template runs
  kWithoutSystem,   ///< the model has a default system prompt of its own
  kWithSystem,      ///< the template leaves the system message out; the row writes it
  kWithoutOpening,  ///< the template opens a reply although not requested
};
struct Exception {
  const char* file;
  Differs differs;
};
const Exception kExceptions[] = {
    {"Bielik-11B-v3.0-Instruct", Differs::kEverywhere},     // BOS
    {"HuggingFaceTB-SmolLM3-3B", Differs::kWithoutSystem},  // a long system prompt for thinking
    {"MiMo-VL", Differs::kWithoutSystem},                   //
    {"Mistral-Small-3.2-24B-Instruct-2506", Differs::kWithoutSystem},  //
    {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", Differs::kEverywhere},  // system turn, opened thought
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", Differs::kEverywhere},  // BOS, tools
    {"Qwen-QwQ-32B", Differs::kEverywhere},                      // thinks in another way
    {"StepFun3.5-Flash", Differs::kEverywhere},                  // BOS
    {"chat-llama3", Differs::kWithoutOpening},                   //
    {"chat-phi3", Differs::kWithSystem},                         //
    {"ibm-granite-granite-4.0", Differs::kWithoutSystem},        //
    {"meetkai-functionary-medium-v3.1", Differs::kEverywhere},   // no date
    {"meetkai-functionary-medium-v3.2", Differs::kEverywhere},   // names of functions
    {"meta-llama-Llama-3.1-8B-Instruct", Differs::kEverywhere},  // always 26 Jul 2024
    {"mistralai-Ministral-3-14B-Reasoning-2512", Differs::kWithoutSystem},
    {"unsloth-Apriel-1.5", Differs::kEverywhere},  // line feeds, system text
    {"unsloth-mistral-Devstral-Small-2507", Differs::kWithoutSystem},
    {"vllm-phi4-mini", Differs::kEverywhere},  // as phi4-mini, but names its roles
};

bool isException(const std::string& file, const std::vector<ChatMessage>& messages,
                 bool generation) {
  const auto* const found = std::find_if(std::begin(kExceptions), std::end(kExceptions),
                                         [&](const Exception& one) { return file == one.file; });
  const bool begins = messages[0].role == "system" && !messages[0].text.empty();
  const bool has_system = std::any_of(messages.begin(), messages.end(),
                                      [](const ChatMessage& one) { return one.role == "system"; });
  switch (found == std::end(kExceptions) ? Differs::kNowhere : found->differs) {
    case Differs::kNowhere:
      return false;
    case Differs::kEverywhere:
      return true;
    case Differs::kWithoutSystem:
      return !begins;
    case Differs::kWithSystem:
      return has_system;
    case Differs::kWithoutOpening:
      return !generation;
  }
  return false;
}

TEST(OwnTemplates, write_what_published_templates_write) {
  ORIEL_NEED_DATA(data, "templates/Qwen-Qwen3-0.6B.json");
  std::map<std::string, size_t> compared;  // cases of a row
  std::set<std::string> differing;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(data).parent_path())) {
    const json published = readJson(entry.path().string());
    const std::string text = published["template"];
    const OwnTemplate* const row = recogniseTemplate(text.data(), text.size());
    if (row == nullptr) {
      continue;
    }
    for (const json& one : published["cases"]) {
      if (!isPlain(one)) {
        continue;
      }
      OwnSettings own;
      own.bos = published["bos_token"].is_string() ? published["bos_token"].get<std::string>() : "";
      own.eos = published["eos_token"].is_string() ? published["eos_token"].get<std::string>() : "";
      own.date = kDayOfReferences;
      own.thinking = wishOf(one);
      const std::vector<ChatMessage> messages = messagesOf(one);
      const OwnText written = ownText(row->text, messages, one["add_generation_prompt"], own);
      const std::string file = entry.path().stem().string();
      const std::string expected = one["expected"];
      if (isException(file, messages, one["add_generation_prompt"])) {
        if (written.said() != expected) {
          differing.insert(file);
        }
        continue;
      }
      EXPECT_EQ(expected, written.said())
          << file << " as " << row->name << ": " << one["name"] << one["enable_thinking"];
      ++compared[row->name];
    }
  }
  EXPECT_EQ(std::size(kExceptions), differing.size()) << "an exception is not needed";
  EXPECT_EQ(24u, compared.size()) << "rows";
  for (const auto& [name, cases] : compared) {
    EXPECT_GE(cases, 6u) << name;
  }
}

// The references in chat/, one file for a format.
TEST(OwnTemplates, write_what_the_chat_references_say) {
  ORIEL_NEED_DATA(data, "chat/qwen3.json");
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(data).parent_path())) {
    const std::string name = entry.path().stem().string();
    const json golden = readJson(entry.path().string());
    const OwnTemplate* const row = ownTemplateByName(name.c_str());
    ASSERT_NE(nullptr, row) << name;
    const std::string text = golden["template"];
    EXPECT_EQ(row, recogniseTemplate(text.data(), text.size())) << name;
    for (const json& one : golden["cases"]) {
      OwnSettings own;
      own.bos = golden["bos_token"];
      own.eos = golden["eos_token"];
      own.thinking = wishOf(one);
      const bool generation = one["add_generation_prompt"];
      if (!isException("chat-" + name, messagesOf(one), generation)) {
        EXPECT_EQ(one["jinja"].get<std::string>(),
                  ownText(row->text, messagesOf(one), generation, own).said())
            << name << one["name"];
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_own_templates

namespace oriel_internal::test::test_chat_recognise {

// Recognising a template's format. The templates here are plausible variants of published ones, not copies.

namespace {

const char* nameOf(const std::string& text) {
  const OwnTemplate* const row = recogniseTemplate(text.data(), text.size());
  return row != nullptr ? row->name : "jinja";
}

std::string nameIn(const GgufWriter& writer) {
  const std::vector<uint8_t> bytes = writer.build();
  GgufFile file;
  EXPECT_TRUE(file.open(bytes.data(), bytes.size(), Log()).ok());
  return recogniseChat(file).name();
}

struct Variant {
  const char* name;
  const char* text;
};

TEST(ChatRecognition, variants_of_known_templates_are_known_by_their_markers) {
  const Variant variants[] = {
      {"chatml",
       R"({%- for m in messages -%}{{- "<|im_start|>" ~ m.role ~ "\n" ~ m.content ~ "<|im_end|>\n" -}}
        {%- endfor -%}{%- if add_generation_prompt -%}{{- "<|im_start|>assistant\n" -}}{%- endif -%})"},
      {"qwen2.5",
       R"({%- if tools %}{{- '<|im_start|>system\n' }}{%- if messages[0].role == 'system' %}
        {{- messages[0].content }}{%- else %}{{- 'You are Qwen, made elsewhere.' }}{%- endif %}
        {{- "\n\n# Tools\n<tools>" }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{%- endif %}
        {%- for message in messages %}{{'<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>'}}
        {%- endfor %})"},
      {"qwen3", R"({%- for message in messages %}{%- if '</think>' in message.content %}{%- endif %}
        {{- '<|im_start|>' + message.role + '\n' }}{%- endfor %}
        {%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\n\n</think>\n\n' }}{%- endif %})"},
      {"qwen3-coder",
       R"({%- if system_message is defined %}{{- "<|im_start|>system\n" + system_message }}
        {%- elif tools %}{{- "<|im_start|>system\nYou are Qwen, made to use tools." }}{%- endif %}
        {{- '<function=a>' }}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }})"},
      {"qwen3-thinking",
       R"({%- for message in messages %}{{- '<|im_start|>' + message.role + '\n<think>\n' }}
        {{- '<|im_end|>\n' }}{%- endfor %}{%- if add_generation_prompt %}
        {{- '<|im_start|>assistant\n<think>\n' }}{%- endif %})"},
      {"chatml", R"({%- for message in messages %}{%- if '</think>' in message.content %}{% endif %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endfor %})"},
      {"smollm3", R"({%- set reasoning_mode = "/think" -%}{{- "<|im_start|>system\n" -}}
        {{- "Today Date: " ~ today ~ "\n" -}}{{- "Reasoning Mode: " + reasoning_mode + "\n\n" -}})"},
      {"smollm3-undated",
       R"({{- "<|im_start|>system\n" -}}{{- "Reasoning Mode: " + mode + "\n\n" -}})"},
      {"qwen3.5",
       R"({%- if not loop.first %}{{- raise_exception('System message must be at the beginning.') }}
        {%- endif %}{{- '<|im_start|>' + message.role + '\n' }}{%- if '</think>' in content %}{%- endif %}
        {%- if enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %})"},
      {"minicpm5",
       R"({{- bos_token }}{{- '<|im_start|>' + role }}{%- set parts = content.split('<tool_sep>') %}
        {%- if '</think>' in content %}{%- endif %}{%- if enable_thinking is defined %}{%- endif %})"},
      {"lfm2",
       R"({{- bos_token -}}{%- set prompt = prompt + "List of tools: <|tool_list_start|>[" -%}
        {{- "<|im_start|>" + message["role"] + "\n" -}})"},
      {"lfm2.5", R"({%- set keep_past_thinking = false -%}{%- set p = p + "List of tools: [" -%}
        {{- "<|im_start|>" + message["role"] + "\n" -}}{%- if "</think>" in content -%}{%- endif -%})"},
      {"lfm2.5-8b", R"({%- set preserve_thinking = false -%}{%- set p = p + "List of tools: [" -%}
        {{- "<|im_start|>" + message["role"] + "\n" -}}{%- if "</think>" in content -%}{%- endif -%})"},
      {"olmo3", R"({{ '<|im_start|>system\nYou are a helpful function-calling AI assistant. ' }}
        {{ 'No functions. <functions></functions><|im_end|>\n' }}{{ '<|im_start|>assistant\n' }})"},
      {"olmo3-think",
       R"({{ '<|im_start|>system\nYou are Olmo.<|im_end|>\n' }}{{ m + ' <functions></functions>' }}
        {{ '<|im_start|>assistant\n<think>' }})"},
      {"granite3",
       R"({%- set system_message = "Knowledge Cutoff Date: April 2024.\nToday's Date: " + now %}
        {{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\n' }})"},
      {"granite3.3",
       R"({%- set system_message = "Knowledge Cutoff Date: April 2024. Today's Date: " + now %}
        {{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\n' }})"},
      {"granite4",
       R"({{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + c + '<|end_of_text|>\n' }})"},
      {"exaone4",
       R"({%- set role_indicators = {'user': '[|user|]\n'} %}{%- set end_of_turn = '[|endofturn|]\n' %}
        {%- if enable_thinking is defined %}{{- "<think>\n" }}{%- endif %})"},
      {"ernie4.5",
       R"({%- set cls_token = "<|begin_of_sentence|>" -%}{%- set sep_token = "<|end_of_sentence|>" -%}
        {{- "User: " + message["content"] + "\n" -}})"},
      {"hunyuan-dense",
       u8R"({{- bos_token }}{{- '<｜hy_User｜>' + m }}{{- '<｜hy_Assistant｜>' + m + eos_token }})"},
      {"olmo2",
       R"({{ bos_token }}{% if message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}
        {% else %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}{% endif %})"},
      {"phi4",
       R"({% for m in messages %}{{'<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>'}}{% endfor %})"},
      {"llama3.2", R"({{- bos_token }}{%- if builtin_tools is defined or tools is not none %}
        {{- "Environment: ipython\n" }}{%- endif %}{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
        {{- "Cutting Knowledge Date: December 2023\n" }}{{- "Today Date: " + date_string + "\n\n" }}
        {{- system_message }}{{- "<|eot_id|>" }})"},
      {"llama3",
       R"({% for m in messages %}{{ '<|start_header_id|>'+m['role']+'<|end_header_id|>\n\n'+m['content']|trim
        + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})"},
      {"gemma3",
       R"({{ bos_token }}{%- set first_user_prefix = messages[0].content[0].text + '\n\n' -%}
        {%- for m in loop_messages -%}{{ '<start_of_turn>' + role + "\n" + (first_user_prefix if loop.first else '') }}
        {%- if item.type == 'audio' -%}{{ '<audio_soft_token>' }}{%- endif -%}{{ '<end_of_turn>\n' }}{%- endfor -%})"},
      {"gemma4",
       R"({{ bos_token }}{%- for m in messages -%}{{- '<|turn>' + m.role + "\n" + m.content + '<turn|>\n' -}}
        {%- endfor -%}{{- '<|turn>model\n' -}}{%- if not think -%}{{- "<|channel>thought\n<channel|>" -}}
        {%- endif -%})"},
      {"gemma4-e",
       R"({{ bos_token }}{%- for m in messages -%}{{- '<|turn>' + m.role + '\n' -}}{%- if m.reasoning -%}
        {{- '<|channel>thought\n' + m.reasoning + '\n<channel|>' -}}{%- endif -%}{{- m.content + '<turn|>\n' -}}
        {%- endfor -%}{{- '<|turn>model\n' -}})"},
      {"gemma2",
       R"({{bos_token}}{%for m in messages%}{{"<start_of_turn>"+m["role"]+"\n"+m["content"]|trim+"<end_of_turn>\n"}}{%endfor%})"},
      {"phi3.5",
       R"({% for m in messages %}{% if m.role=='system' %}{{"<|system|>\n"+m.content+"<|end|>\n"}}
        {% elif m.role=='user' %}{{"<|user|>\n"+m.content+"<|end|>\n"}}{% endif %}{% endfor %}<|assistant|>)"},
      {"phi3",
       R"({% for m in messages %}{{'<|user|>' + '\n' + m.content + '<|end|>' + '\n' + '<|assistant|>'}}{% endfor %})"},
      {"phi4-mini",
       R"({% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}
        {% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %})"},
      {"zephyr",
       "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
       "message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n"
       "{{ '<|assistant|>\n' + message['content'] + eos_token }}\n{% endif %}\n{% endfor %}"},
      {"mistral-v1",
       R"({{ bos_token }}{% for m in messages %}{{ " [INST] " + m["content"] + " [/INST]" }}{% endfor %})"},
      {"mistral-v2",
       R"({{ bos_token }}{% for m in messages %}{{ '[INST] ' + m['content'] + ' [/INST]' }}{% endfor %})"},
      {"mistral-v3",
       R"({{- bos_token }}{%- if tools is not none %}{{- "[AVAILABLE_TOOLS] [" }}{%- endif %}
        {%- if loop.last and system_message is defined %}{{- "[INST] " + system_message + "\n\n" + message["content"] + "[/INST]" }}
        {%- endif %}{{- " " + message["content"]|trim + eos_token}})"},
      {"mistral-nemo",
       R"({{- bos_token }}{{- '[INST]' + system_message + '\n\n' + message['content'] + '[/INST]' }})"},
      {"mistral-v7",
       R"({{- bos_token }}{{ '[SYSTEM_PROMPT]' + content + '[/SYSTEM_PROMPT]' }}{{ '[INST]' + c + '[/INST]' }})"},
      {"jinja",
       "{% for m in messages %}{{ 'GPT4 Correct ' + m.role + ': ' + m.content + '<|end_of_turn|>' "
       "}}{% endfor %}"},
      {"jinja", "{{ '[INST] <<SYS>>\\n' + s + '\\n<</SYS>>\\n\\n' + m + ' [/INST]' }}"},
      {"jinja",
       "[gMASK]<sop>{% for m in messages %}<|user|>\n{{ m.content }}<|assistant|>{{ eos_token }}{% "
       "endfor %}"},
      {"jinja",
       "{% for m in messages %}<|im_start|>{{ m.role }}<|im_middle|>{{ m.content }}<|im_end|>{% "
       "endfor %}"},
  };
  for (const Variant& variant : variants) {
    EXPECT_STREQ(variant.name, nameOf(variant.text)) << variant.text;
  }
}

TEST(ChatRecognition, a_file_is_known_by_its_template_then_by_its_tokens) {
  CapturedLog log;
  Vocabulary v;
  v.add("<|im_start|>", kControlType);
  v.add("<|im_end|>", kControlType);
  EXPECT_EQ("chatml", nameIn(v.writer()));
  GgufWriter other = v.writer();
  other.addString("tokenizer.chat_template", "{{ '<start_of_turn>' + '<end_of_turn>' }}");
  EXPECT_EQ("gemma2", nameIn(other));
  v.types[1] = kNormalType;
  EXPECT_EQ("none", nameIn(v.writer()));
  EXPECT_EQ("none", nameIn(GgufWriter()));
}

TEST(ChatRecognition, no_format_is_known_for_an_unknown_template) {
  Vocabulary v;
  v.startSpm(false);
  GgufWriter file = v.writer();
  file.addString("tokenizer.chat_template",
                 "{% for m in messages %}@{{ m.role }}: {{ m.content }}{% endfor %}");
  EXPECT_EQ("jinja", nameIn(file));
}

TEST(ChatRecognition, names_and_templates_are_told_apart) {
  CapturedLog log;
  ChatTemplate own;
  ASSERT_TRUE(chooseChat({}, "gemma2", log.log(), &own).ok());
  ChatTemplate chat;
  ASSERT_TRUE(chooseChat(own, nullptr, log.log(), &chat).ok());
  EXPECT_STREQ(chat.name(), "gemma2");
  ASSERT_TRUE(chooseChat(own, "phi3.5", log.log(), &chat).ok());
  EXPECT_STREQ(chat.name(), "phi3.5");
  ASSERT_TRUE(chooseChat(own, "{{ '<|im_start|>' }}", log.log(), &chat).ok());
  EXPECT_STREQ(chat.name(), "chatml");
  EXPECT_EQ(chooseChat(own, "gemma9", log.log(), &chat).code(), ORIEL_ERROR_ARGUMENT);
  EXPECT_TRUE(log.says("use one of chatml, ernie4.5"));
  EXPECT_TRUE(log.says("zephyr")) << "the list is not cut off";
}

// Searching from every quote to the end took 11 s for 200 KB.
TEST(ChatRecognition, reads_two_megabytes_of_quotes_at_once) {
  const std::string quotes(2'000'000, '\'');
  std::string marks = "<|im_start|>";
  while (marks.size() < 2'000'000) {
    marks += "<|im_start|>system\nyou ";
  }
  for (const std::string& text : {"<|im_start|>Reasoning Mode: " + quotes, "<|im_start|>" + quotes,
                                  marks, marks + "<|im_end|>", quotes}) {
    EXPECT_LT(processorSeconds([&] { (void)nameOf(text); }), 1.0);
  }
}

TEST(ChatRecognition, roles_are_short_words) {
  for (const std::string role :
       {"", "User", "user\n", "a b", "<|im_end|>", "abcdefghijklmnopqrstuvwxyzabcdefg"}) {
    EXPECT_FALSE(isRole(role.data(), role.size())) << role;
  }
  for (const std::string role : {"tool_result", "abcdefghijklmnopqrstuvwxyzabcdef"}) {
    EXPECT_TRUE(isRole(role.data(), role.size())) << role;
  }
}

TEST(ChatRecognition, a_role_that_a_template_does_not_name_is_warned_of) {
  CapturedLog log;
  ChatTemplate chat;
  ASSERT_TRUE(chooseChat({}, "{% if m.role == 'tool' %}", log.log(), &chat).ok());
  for (const char* const role : {"user", "assistant", "system", "tool", "No role"}) {
    warnOfRole(chat, role, std::strlen(role), 0, log.log());
  }
  EXPECT_EQ(0u, log.lines.size());
  warnOfRole(chat, "critic", 6, 3, log.log());
  ASSERT_EQ(1u, log.lines.size());
  EXPECT_NE(std::string::npos, log.lines[0].text.find("message 3 has the role \"critic\""));
}

}  // namespace
}  // namespace oriel_internal::test::test_chat_recognise
