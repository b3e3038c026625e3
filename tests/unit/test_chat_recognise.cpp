// Recognising a template's format. The templates here are plausible variants of published ones, not copies.
#include <gtest/gtest.h>

#include <cstring>

#include "chat/chat_template.h"
#include "support/captured_log.h"
#include "support/processor_time.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_chat_recognise {
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
