// Which format a template writes. The templates here are plausible variants of published ones, not copies.
#include <gtest/gtest.h>

#include <cstring>

#include "chat/own_templates.h"
#include "support/chat_text.h"
#include "support/tokenizer_case.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_chat_recognise {
namespace {

ChatTemplate recognised(const std::string& text) {
  return recogniseChatTemplate(text.data(), text.size());
}

/// Its text is gone with the file.
ChatTemplate recognisedIn(const GgufWriter& writer) {
  const std::vector<uint8_t> bytes = writer.build();
  auto file = std::make_unique<GgufFile>();
  EXPECT_TRUE(file->open(bytes.data(), bytes.size(), Log()).ok());
  ChatTemplate chat = recogniseChat(*file);
  chat.jinja = nullptr;
  return chat;
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
      {"plain",
       "{% for m in messages %}{{ 'GPT4 Correct ' + m.role + ': ' + m.content + '<|end_of_turn|>' "
       "}}{% endfor %}"},
      {"plain", "{{ '[INST] <<SYS>>\\n' + s + '\\n<</SYS>>\\n\\n' + m + ' [/INST]' }}"},
      {"plain",
       "[gMASK]<sop>{% for m in messages %}<|user|>\n{{ m.content }}<|assistant|>{{ eos_token }}{% "
       "endfor %}"},
      {"plain",
       "{% for m in messages %}<|im_start|>{{ m.role }}<|im_middle|>{{ m.content }}<|im_end|>{% "
       "endfor %}"},
  };
  for (const Variant& variant : variants) {
    EXPECT_STREQ(recognised(variant.text).name(), variant.name) << variant.text;
    const OwnTemplate* const row = recogniseTemplate(variant.text, std::strlen(variant.text));
    EXPECT_STREQ(row != nullptr ? row->name : "plain", variant.name) << variant.text;
  }
}

TEST(ChatRecognition, the_default_system_prompt_is_the_templates_own) {
  const std::vector<ChatMessage> hi = {{"user", "Hi"}};
  const auto rendered = [&](const std::string& text) {
    return wholeText(recognised(text), {}, hi, false);
  };
  const std::string user = "<|im_start|>user\nHi<|im_end|>\n";
  const std::string code =
      "{{- '<|im_start|>system\\n' }}{{- '<|im_start|>system\\n' + messages[0].content + "
      "'<|im_end|>\\n' }}";
  EXPECT_EQ(rendered(code + "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}"),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n" + user);
  EXPECT_EQ(rendered(code + R"({{- "<|im_start|>system\nYou're two\n\"lines\".<|im_end|>\n" }})"),
            "<|im_start|>system\nYou're two\n\"lines\".<|im_end|>\n" + user);
  EXPECT_EQ(rendered(code + R"({{- '<|im_start|>system\nYou are Qwen. Reason.<|im_end|>\n' }})"),
            "<|im_start|>system\nYou are Qwen. Reason.<|im_end|>\n" + user);
  EXPECT_EQ(rendered(code), user);
  EXPECT_EQ(rendered("<|im_start|>system\n{{ system }}<|im_end|>"), user);
  EXPECT_EQ(rendered("{{ '<|im_start|>system\\n" + std::string(5000, 'x') + "<|im_end|>' }}"),
            user);

  EXPECT_EQ(
      wholeText(recognised("{%- set default_system_message = \"Be it.\\nToday is \" + today + "
                           "\".\\nThink.\" %}{{ '[SYSTEM_PROMPT]' }}{{ '[INST]' }}"),
                {}, hi, false),
      "<s>[SYSTEM_PROMPT]Be it.\nToday is 2024-07-26.\nThink.[/SYSTEM_PROMPT][INST]Hi[/INST]");
  EXPECT_EQ(wholeText(recognised("{%- set g4_default_system_message = 'Be safe.' %}"
                                 "<|start_of_role|><|end_of_role|><|end_of_text|>"),
                      {}, hi, false),
            "<|start_of_role|>system<|end_of_role|>Be safe.<|end_of_text|>\n"
            "<|start_of_role|>user<|end_of_role|>Hi<|end_of_text|>\n");

  const std::string smollm3 =
      R"({{- "<|im_start|>system\n" -}}{{- "Today Date: " + today -}}
      {{- "Reasoning Mode: " + reasoning_mode + "\n\n" -}}
      {{- "You are a helpful AI assistant named SmolLM, trained by Hugging Face. Think <think> long.\n\n" -}}
      {{- "You are a helpful AI assistant named SmolLM, trained by Hugging Face.\n\n" -}})";
  const std::string thinks = wholeText(recognised(smollm3), {}, hi, false);
  EXPECT_NE(thinks.find("Hugging Face. Think <think> long.\n\n<|im_end|>"), std::string::npos);
  ChatOptions quick;
  quick.thinking = false;
  const std::string answers = wholeText(recognised(smollm3), quick, hi, false);
  EXPECT_NE(answers.find("Instructions\n\nYou are a helpful AI assistant named SmolLM, trained by "
                         "Hugging Face.\n\n<|im_end|>"),
            std::string::npos);
}

TEST(ChatRecognition, a_template_that_asks_whether_to_open_a_reply_is_asked) {
  const std::string always = "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>' }}";
  const std::vector<ChatMessage> hi = {{"user", "Hi"}};
  const std::string closed =
      "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>";
  const std::string opened = closed + "<|start_header_id|>assistant<|end_header_id|>\n\n";
  EXPECT_EQ(wholeText(recognised(always), {}, hi, false), opened);
  const std::string asks = always + "{% if add_generation_prompt %}{% endif %}";
  EXPECT_EQ(wholeText(recognised(asks), {}, hi, false), closed);
  EXPECT_EQ(wholeText(recognised(asks), {}, hi, true), opened);
}

TEST(ChatRecognition, a_file_is_known_by_its_template_then_by_its_tokens) {
  CapturedLog log;
  Vocabulary v;
  v.add("<|im_start|>", kControlType);
  v.add("<|im_end|>", kControlType);
  EXPECT_STREQ(recognisedIn(v.writer()).name(), "chatml");
  GgufWriter other = v.writer();
  other.addString("tokenizer.chat_template", "{{ '<start_of_turn>' + '<end_of_turn>' }}");
  EXPECT_STREQ(recognisedIn(other).name(), "gemma2");
  v.types[1] = kNormalType;
  EXPECT_STREQ(recognisedIn(v.writer()).name(), "none");
  EXPECT_STREQ(recognisedIn(GgufWriter()).name(), "none");
}

TEST(ChatRecognition, no_format_is_known_for_an_unknown_template) {
  Vocabulary v;
  v.startSpm(false);
  GgufWriter file = v.writer();
  file.addString("tokenizer.chat_template",
                 "{% for m in messages %}@{{ m.role }}: {{ m.content }}{% endfor %}");
  EXPECT_STREQ(recognisedIn(file).name(), "plain");
}

TEST(ChatRecognition, a_template_ends_messages_with_the_models_own_eos) {
  CapturedLog log;
  Vocabulary v;
  v.startSpm(false);
  const int32_t end = v.add("<|endoftext|>", kControlType);
  GgufWriter file = v.writer();
  file.addUint32("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(end));
  file.addString("tokenizer.chat_template",
                 "{{ '<|user|>\n' + message['content'] + eos_token }}\n{{ '<|assistant|>\n' }}");
  EXPECT_EQ(wholeText(recognisedIn(file), {}, {{"user", "Hi"}}, true),
            "<|user|>\nHi<|endoftext|>\n<|assistant|>\n");
}

TEST(ChatRecognition, names_and_templates_are_told_apart) {
  CapturedLog log;
  const ChatTemplate own = formatNamed("gemma2");
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

}  // namespace
}  // namespace oriel_internal::test::test_chat_recognise
