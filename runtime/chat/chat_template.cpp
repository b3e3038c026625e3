#include "chat/chat_template.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "json/json.h"

namespace oriel_internal {
namespace {

// The text of the token whose id is in `key`.
void readToken(const GgufFile& file, const char* key, char (&out)[ChatTemplate::kMaxToken]) {
  uint64_t id = 0;
  GgufArray tokens;
  if (!file.getUint(key, &id) || !file.getArray("tokenizer.ggml.tokens", &tokens) ||
      id >= tokens.count) {
    return;
  }
  GgufArrayReader reader(tokens);
  GgufString token;
  for (uint64_t i = 0; i <= id; ++i) {
    if (!reader.nextString(&token)) {
      return;
    }
  }
  if (token.bytes < sizeof(out)) {
    std::memcpy(out, token.data, token.bytes);
    out[token.bytes] = '\0';
  }
}

void useOurs(const OwnTemplate* row, ChatTemplate* chat) {
  chat->row = row;
  chat->jinja = row != nullptr ? row->text : nullptr;
  chat->jinja_bytes = row != nullptr ? std::strlen(row->text) : 0;
}

bool namesRole(const ChatTemplate& chat, const JsonText& role) {
  if (role.is("system") || role.is("user") || role.is("assistant")) {
    return true;
  }
  char quoted[kMaxRoleBytes + 3];
  std::snprintf(quoted, sizeof(quoted), "'%.*s'", static_cast<int>(role.bytes), role.data);
  return templateContains(chat.jinja, chat.jinja_bytes, quoted);
}

}  // namespace

ChatTemplate recogniseChat(const GgufFile& file) {
  ChatTemplate chat;
  GgufString text;
  if (file.getString("tokenizer.chat_template", &text) && text.bytes != 0) {
    chat.jinja = text.data;
    chat.jinja_bytes = static_cast<size_t>(text.bytes);
    chat.row = recogniseTemplate(chat.jinja, chat.jinja_bytes);
  } else {
    useOurs(ownTemplateOfVocabulary(file), &chat);
  }
  if (file.getString("tokenizer.chat_template.rerank", &text)) {
    chat.rerank = text.data;
    chat.rerank_bytes = std::min<size_t>(text.bytes, kMaxChatTemplateBytes);
  }
  readToken(file, "tokenizer.ggml.eos_token_id", chat.eos);
  readToken(file, "tokenizer.ggml.bos_token_id", chat.bos);
  return chat;
}

void keepTemplate(Arena* arena, ChatTemplate* chat) {
  const size_t bytes = std::min(chat->jinja_bytes, kMaxChatTemplateBytes + 1);
  char* const copy = bytes != 0 && !chat->isOurs() ? arena->take<char>(bytes) : nullptr;
  if (copy != nullptr) {
    std::memcpy(copy, chat->jinja, bytes);
    chat->jinja = copy;
    chat->jinja_bytes = bytes;
  }
  char* const rerank =
      chat->rerank_bytes != 0 ? arena->take<char>(chat->rerank_bytes + 1) : nullptr;
  if (rerank != nullptr) {
    std::memcpy(rerank, chat->rerank, chat->rerank_bytes);
    rerank[chat->rerank_bytes] = '\0';
    chat->rerank = rerank;
  }
}

Status chooseChat(const ChatTemplate& own, const char* wanted, const Log& log, ChatTemplate* out) {
  *out = own;
  if (wanted == nullptr) {
    return kOk;
  }
  if (const OwnTemplate* const row = ownTemplateByName(wanted); row != nullptr) {
    useOurs(row, out);
    return kOk;
  }
  // A Jinja text contains a brace; a format name does not.
  const size_t bytes = std::strlen(wanted);
  if (std::strchr(wanted, '{') == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "\"%.64s\" is no chat format: use one of %s", wanted,
                    kOwnTemplateNames);
  }
  out->jinja = wanted;
  out->jinja_bytes = bytes;
  out->row = recogniseTemplate(wanted, bytes);
  return kOk;
}

bool replaceByOurs(ChatTemplate* chat) {
  if (chat->row == nullptr || chat->isOurs()) {
    return false;
  }
  useOurs(chat->row, chat);
  return true;
}

bool isRole(const char* role, size_t bytes) {
  return bytes != 0 && bytes <= kMaxRoleBytes &&
         std::all_of(role, role + bytes, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

void warnOfRole(const ChatTemplate& chat, const char* role, size_t bytes, size_t number,
                const Log& log) {
  if (!isRole(role, bytes) || namesRole(chat, {role, bytes})) {
    return;
  }
  char which[32] = "a message";
  if (number != 0) {
    std::snprintf(which, sizeof(which), "message %zu", number);
  }
  log.write(ORIEL_LOG_WARNING,
            "%s has the role \"%.*s\", which the chat template does not name: use \"system\", "
            "\"user\" or \"assistant\"",
            which, static_cast<int>(bytes), role);
}

namespace {

// clang-format off: one line here is about one line of Jinja.

// Pieces shared by several texts.

#define REPLY(text) "{% if add_generation_prompt %}" text "{% endif %}"
#define IF_WHOLE(text) "{% if not add_generation_prompt %}" text "{% endif %}"
#define IF_NO_THINKING(text) "{% if enable_thinking is false %}" text "{% endif %}"
#define NO_THOUGHT "<think>\n\n</think>\n\n"
#define THOUGHT_OR_NONE "<think>\n" IF_NO_THINKING("{{ '\\n' }}</think>\n\n")

#define EACH "{% for m in messages %}"
#define END_EACH "{% endfor %}"
/// A loop that skips an empty system message at the beginning.
#define EACH_SAID EACH "{% if m.content or m.role != 'system' or not loop.first %}"
#define END_SAID "{% endif %}" END_EACH

#define REFUSE_OTHER_ROLES                                                           \
  "{% for m in messages if m.role not in ['system', 'user', 'assistant'] %}"         \
  "{{ raise_exception('this format has no role \"' ~ m.role ~ '\": use \"user\" or " \
  "\"assistant\"') }}" END_EACH
#define REFUSE_LATER_SYSTEM                                                                  \
  "{% for m in messages[1:] if m.role == 'system' %}"                                        \
  "{{ raise_exception('this format has no place for a later system message: put it first') " \
  "}}" END_EACH

/// Text before a conversation without a system message.
#define IF_NO_SYSTEM(text) \
  "{% if not messages or messages[0].role != 'system' %}" text "{% endif %}"
/// Sets `system` to the text of a leading system message.
#define GET_SYSTEM                                                   \
  "{% set has_system = messages and messages[0].role == 'system' %}" \
  "{% set system = messages[0].content if has_system else '' %}"
/// Sets n.last to the index of the last message of a role, or 0.
#define FIND_LAST(role)                                           \
  "{% set n = namespace(last=0) %}" EACH "{% if m.role == '" role \
  "' %}{% set n.last = loop.index0 %}{% endif %}" END_EACH

// ChatML, and formats with its tokens.

#define CHATML_TURNS EACH "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n" END_EACH
#define CHATML_SYSTEM(text) "<|im_start|>system\n" text "<|im_end|>\n"
#define CHATML_OPEN "<|im_start|>assistant\n"

constexpr char kChatMl[] = CHATML_TURNS REPLY(CHATML_OPEN);
constexpr char kSmolLm2[] = IF_NO_SYSTEM(
    CHATML_SYSTEM("You are a helpful AI assistant named SmolLM, trained by Hugging Face"))
    CHATML_TURNS REPLY(CHATML_OPEN);
constexpr char kQwen2[] = REFUSE_OTHER_ROLES IF_NO_SYSTEM(
    CHATML_SYSTEM("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."))
    CHATML_TURNS REPLY(CHATML_OPEN);

/// Drops the thoughts of answers. An answer after the last question gets a block for its thought if `block` holds.
#define QWEN3_TURNS(trim, block)                                                \
  REFUSE_OTHER_ROLES FIND_LAST("user") EACH                                     \
      "{% set text = m.content" trim                                            \
      " %}<|im_start|>{{ m.role }}\n"                                           \
      "{% if m.role == 'assistant' %}"                                          \
      "{% set parts = text.split('</think>') %}"                                \
      "{% set thought = parts[0].split('<think>')[-1].strip('\\n')" trim        \
      " if parts[1:] else '' %}"                                                \
      "{% set text = parts[-1].lstrip('\\n') if parts[1:] else text %}"         \
      "{% if loop.index0 > n.last and (" block                                  \
      ") %}"                                                                    \
      "<think>\n{{ thought }}\n</think>\n\n{% set text = text.lstrip('\\n') %}" \
      "{% endif %}{% endif %}"                                                  \
      "{{ text }}<|im_end|>\n" END_EACH

constexpr char kQwen3[] =
    QWEN3_TURNS("", "thought or loop.last") REPLY(CHATML_OPEN IF_NO_THINKING(NO_THOUGHT));
constexpr char kQwen3Thinking[] =
    QWEN3_TURNS("", "thought or loop.last") REPLY(CHATML_OPEN "<think>\n");
constexpr char kQwen35[] =
    REFUSE_LATER_SYSTEM QWEN3_TURNS("|trim", "true") REPLY(CHATML_OPEN THOUGHT_OR_NONE);
constexpr char kMiniCpm5[] = "{{ bos_token }}" QWEN3_TURNS("", "thought") REPLY(
    CHATML_OPEN IF_NO_THINKING(NO_THOUGHT) "{% if enable_thinking is true %}<think>\n{% endif %}");

/// Drops the thoughts of answers unless `keeps` holds.
#define LFM2(find_last, keeps)                                              \
  "{{ bos_token }}" REFUSE_OTHER_ROLES find_last EACH_SAID                  \
  "<|im_start|>{{ m.role }}\n"                                              \
  "{% if m.role == 'assistant' and '</think>' in m.content and not (" keeps \
  ") %}"                                                                    \
  "{{ m.content.split('</think>')[-1]|trim }}"                              \
  "{% else %}{{ m.content }}{% endif %}<|im_end|>\n" END_SAID               \
  REPLY(CHATML_OPEN)

constexpr char kLfm2[] = LFM2("", "true");
constexpr char kLfm25[] = LFM2(FIND_LAST("assistant"), "loop.index0 == n.last");
constexpr char kLfm25Large[] = LFM2(FIND_LAST("user"), "loop.index0 > n.last");

#define OLMO3_FUNCTIONS "You do not currently have access to any functions. <functions></functions>"
/// EOS closes the last answer.
#define OLMO3_TURNS(after_system)                                                                  \
  REFUSE_OTHER_ROLES                                                                               \
  EACH "<|im_start|>{{ m.role }}\n{{ m.content }}"                                                 \
       "{% if m.role == 'system' %}" after_system                                                  \
       "{% endif %}"                                                                               \
       "{% if m.role == 'assistant' and loop.last and not add_generation_prompt %}{{ eos_token }}" \
       "{% else %}<|im_end|>\n{% endif %}" END_EACH

constexpr char kOlmo3[] =
    IF_NO_SYSTEM(CHATML_SYSTEM("You are a helpful function-calling AI assistant. " OLMO3_FUNCTIONS))
        OLMO3_TURNS("") REPLY(CHATML_OPEN);
constexpr char kOlmo3Think[] = OLMO3_TURNS(" " OLMO3_FUNCTIONS) REPLY(CHATML_OPEN "<think>");

/// Words in the system text switch thinking, or omit the header.
#define SMOLLM3(date)                                                                           \
  REFUSE_OTHER_ROLES REFUSE_LATER_SYSTEM GET_SYSTEM                                             \
      "{% set wants = '/think' in system or enable_thinking is not false %}"                    \
      "{% set think = '/no_think' not in system and wants %}"                                   \
      "{% set given = system.replace('/no_think', '').replace('/think', '') %}"                 \
      "<|im_start|>system\n"                                                                    \
      "{% if '/system_override' in given %}"                                                    \
      "{{ given.replace('/system_override', '').rstrip() }}<|im_end|>\n"                        \
      "{% else %}"                                                                              \
      "## Metadata\n\nKnowledge Cutoff Date: June 2025\n" date                                  \
      "Reasoning Mode: {{ '/think' if think else '/no_think' }}\n\n## Custom Instructions\n\n"  \
      "{{ given.rstrip() or 'You are a helpful AI assistant named SmolLM, trained by Hugging "  \
      "Face.' }}\n\n<|im_end|>\n"                                                               \
      "{% endif %}"                                                                             \
      "{% for m in messages if m.role != 'system' %}<|im_start|>{{ m.role }}\n"                 \
      "{% if m.role == 'user' %}{{ m.content }}"                                                \
      "{% else %}{% if not think %}<think>\n\n</think>\n{% endif %}{{ m.content.lstrip('\\n') " \
      "}}{% endif %}"                                                                           \
      "<|im_end|>\n" END_EACH                                                                   \
      REPLY(CHATML_OPEN "{% if not think %}<think>\n\n</think>\n{% endif %}")

constexpr char kSmolLm3[] = SMOLLM3("Today Date: {{ strftime_now('%d %B %Y') }}\n");
constexpr char kSmolLm3Undated[] = SMOLLM3("");

constexpr char kPhi4[] = REFUSE_OTHER_ROLES EACH
    "<|im_start|>{{ m.role }}<|im_sep|>{{ m.content }}<|im_end|>" END_EACH REPLY(
        "<|im_start|>assistant<|im_sep|>");

// Formats that put the system text into the first question.

/// The first question, or the last one if `in_last` holds. A text that ends with the system text leaves the turn open:
/// it is the start of the longer conversation's text.
#define JOINED(open, system_text, question, close, answer, reply, in_last)            \
  "{{ bos_token }}" REFUSE_OTHER_ROLES REFUSE_LATER_SYSTEM GET_SYSTEM                 \
  "{% set waits = has_system and (" in_last ") %}" EACH                               \
  "{% set joins = loop.index0 == 1 and has_system and not waits %}"                   \
  "{% if m.role == 'system' %}{% if not waits %}" open system_text                    \
  "{% endif %}"                                                                       \
  "{% elif m.role == 'user' %}{% if not joins %}" open                                \
  "{% endif %}"                                                                       \
  "{% if waits and loop.last %}" system_text "{% endif %}" question close             \
  "{% else %}{% if joins %}" close "{% endif %}" answer "{% endif %}" END_EACH REPLY( \
      "{% if has_system and messages|length == 1 %}" close "{% endif %}" reply)

#define GEMMA(system_text, question)                                                            \
  JOINED("<start_of_turn>user\n", system_text, question, "<end_of_turn>\n",                     \
         "<start_of_turn>model\n{{ m.content|trim }}<end_of_turn>\n", "<start_of_turn>model\n", \
         "false")
constexpr char kGemma2[] =
    GEMMA("{{ system.lstrip() }}\n", "{{ m.content.rstrip() if joins else m.content|trim }}");
constexpr char kGemma3[] = GEMMA("{{ system }}\n\n", "{{ m.content|trim }}");

// A question also opens its answer.
constexpr char kPhi3[] =
    JOINED("<|user|>\n", "{{ system }}\n", "{{ m.content }}", "<|end|>\n<|assistant|>\n",
           "{{ m.content }}<|end|>\n", "", "false");

#define MISTRAL(open, close, answer, in_last) \
  JOINED(open, "{{ system }}\n\n", "{{ m.content }}", close, answer "{{ eos_token }}", "", in_last)
constexpr char kMistralV1[] = MISTRAL(" [INST] ", " [/INST]", " {{ m.content }}", "false");
constexpr char kMistralV2[] = MISTRAL("[INST] ", " [/INST]", "{{ m.content }}", "false");
constexpr char kMistralV3[] =
    MISTRAL("[INST] ", "[/INST]", " {{ m.content|trim }}", "messages|length > 2");
constexpr char kMistralNemo[] =
    MISTRAL("[INST]", "[/INST]", "{{ m.content }}", "messages|length > 2");

// All others.

constexpr char kMistralV7[] =
    "{{ bos_token }}" REFUSE_OTHER_ROLES REFUSE_LATER_SYSTEM EACH
    "{% if m.role == 'system' %}[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]"
    "{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]"
    "{% else %}{{ m.content }}{{ eos_token }}{% endif %}" END_EACH;

#define LLAMA3_HEAD(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"
#define LLAMA3_TURN LLAMA3_HEAD("{{ m.role }}") "{{ m.content|trim }}<|eot_id|>"
constexpr char kLlama3[] =
    "{{ bos_token }}" EACH LLAMA3_TURN END_EACH REPLY(LLAMA3_HEAD("assistant"));
constexpr char kLlama32[] =
  "{{ bos_token }}" GET_SYSTEM
  LLAMA3_HEAD("system") "Cutting Knowledge Date: December 2023\nToday Date: {{ strftime_now('%d %b %Y') }}\n\n"
  "{{ system|trim }}<|eot_id|>"
  EACH "{% if m.role != 'system' or not loop.first %}" LLAMA3_TURN "{% endif %}" END_EACH
  REPLY(LLAMA3_HEAD("assistant"));

/// A word in the system text enables thinking. Answers lose their thoughts.
#define GEMMA4(no_thought)                                                                        \
  "{{ bos_token }}" REFUSE_OTHER_ROLES GET_SYSTEM                                                 \
  "{% set think = enable_thinking or '<|think|>' in system %}"                                    \
  "{% if think or has_system %}<|turn>system\n{% if think %}<|think|>\n{% endif %}"               \
  "{{ system.replace('<|think|>', '')|trim }}<turn|>\n{% endif %}" EACH                           \
  "{% if m.role == 'assistant' %}<|turn>model\n"                                                  \
  "{% set n = namespace(text='') %}{% for part in m.content.split('<channel|>') %}"               \
  "{% set n.text = n.text ~ part.split('<|channel>')[0] %}{% endfor %}{{ n.text|trim }}<turn|>\n" \
  "{% elif m.role == 'user' or not loop.first %}"                                                 \
  "<|turn>{{ m.role }}\n{{ m.content|trim }}<turn|>\n{% endif %}" END_EACH REPLY(                 \
      "<|turn>model\n{% if not think %}" no_thought "{% endif %}")
constexpr char kGemma4[] = GEMMA4("<|channel>thought\n<channel|>");
constexpr char kGemma4Small[] = GEMMA4("");  // E2B and E4B were trained to answer at once

#define GRANITE_HEAD(role) "<|start_of_role|>" role "<|end_of_role|>"
#define GRANITE_TURN GRANITE_HEAD("{{ m.role }}") "{{ m.content }}<|end_of_text|>\n"
#define GRANITE3(joint)                                                                          \
  IF_NO_SYSTEM(GRANITE_HEAD("system") "Knowledge Cutoff Date: April 2024." joint                 \
                                      "Today's Date: {{ strftime_now('%B %d, %Y') }}." joint     \
                                      "You are Granite, developed by IBM. You are a helpful AI " \
                                      "assistant.<|end_of_text|>\n")                             \
  EACH GRANITE_TURN END_EACH REPLY(GRANITE_HEAD("assistant"))
constexpr char kGranite3[] = GRANITE3("\n");
constexpr char kGranite33[] = GRANITE3(" ");
constexpr char kGranite4[] =
    REFUSE_OTHER_ROLES EACH_SAID GRANITE_TURN END_SAID REPLY(GRANITE_HEAD("assistant"));

constexpr char kExaone4[] = REFUSE_OTHER_ROLES EACH
    "[|{{ m.role }}|]\n"
    "{% if m.role == 'assistant' %}" NO_THOUGHT
    "{% endif %}"
    "{% if m.role == 'assistant' and '</think>' in m.content %}{{ "
    "m.content.split('</think>')[-1]|trim }}"
    "{% else %}{{ m.content }}{% endif %}[|endofturn|]\n" END_EACH REPLY(
        "[|assistant|]\n" THOUGHT_OR_NONE);

constexpr char kErnie45[] =
    "{{ bos_token }}" REFUSE_OTHER_ROLES EACH
    "{% if m.role == 'assistant' %}Assistant: {{ m.content }}<|end_of_sentence|>"
    "{% else %}{{ 'User: ' if m.role == 'user' else '' }}{{ m.content }}\n{% endif %}" END_EACH
        REPLY("Assistant: ");

#define BAR "\xEF\xBD\x9C"    // U+FF5C
#define BLANK "\xE2\x96\x81"  // U+2581
#define HUNYUAN(name) "<" BAR "hy_" name BAR ">"
#define HUNYUAN_HOLDER(number) HUNYUAN("place" BLANK "holder" BLANK "no" BLANK number)
constexpr char kHunyuanDense[] =
  "{{ bos_token }}" REFUSE_OTHER_ROLES REFUSE_LATER_SYSTEM EACH
  "{% if m.role == 'user' %}" HUNYUAN("User") "{{ m.content }}"
  "{% elif m.role == 'assistant' %}" HUNYUAN("Assistant") "{{ m.content }}" HUNYUAN_HOLDER("2")
  "{% elif m.content %}{{ m.content }}" HUNYUAN_HOLDER("3") "{% endif %}" END_EACH
  REPLY(HUNYUAN("Assistant"));

constexpr char kPhi35[] = REFUSE_OTHER_ROLES EACH_SAID
    "<|{{ m.role }}|>\n{{ m.content }}<|end|>\n" END_SAID REPLY("<|assistant|>\n")
        IF_WHOLE("{{ eos_token }}");
constexpr char kPhi4Mini[] =
    REFUSE_OTHER_ROLES EACH "<|{{ m.role }}|>{{ m.content }}<|end|>" END_EACH REPLY("<|assistant|>")
        IF_WHOLE("{{ eos_token }}");

constexpr char kZephyr[] = REFUSE_OTHER_ROLES EACH
    "<|{{ m.role }}|>\n{{ m.content }}{{ eos_token }}\n" END_EACH REPLY("<|assistant|>\n");
constexpr char kOlmo2[] = REFUSE_OTHER_ROLES EACH
    "<|{{ m.role }}|>\n{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% if m.role != 'assistant' or not loop.last or add_generation_prompt %}{{ '\\n' }}{% endif "
    "%}" END_EACH REPLY("<|assistant|>\n");

constexpr char kPlain[] = REFUSE_OTHER_ROLES EACH
    "{% if m.role == 'system' %}{{ m.content }}\n\n"
    "{% else %}{{ m.role|capitalize }}: {{ m.content }}\n{% endif %}" END_EACH REPLY("Assistant:");

// clang-format on

// The first row whose markers match wins.
constexpr OwnTemplate kRows[] = {
    {"smollm3", kSmolLm3, {"<|im_start|>", "Reasoning Mode: ", "Today Date: "}},
    {"smollm3-undated", kSmolLm3Undated, {"<|im_start|>", "Reasoning Mode: "}},
    {"qwen3.5",
     kQwen35,
     {"<|im_start|>", "System message must be at the beginning", "enable_thinking"}},
    {"minicpm5", kMiniCpm5, {"<|im_start|>", "enable_thinking", "<tool_sep>"}},
    {"lfm2.5", kLfm25, {"<|im_start|>", "List of tools: ", "keep_past_thinking"}},
    {"lfm2.5-8b", kLfm25Large, {"<|im_start|>", "List of tools: ", "preserve_thinking"}},
    {"lfm2", kLfm2, {"<|im_start|>", "List of tools: "}},
    {"olmo3-think", kOlmo3Think, {"<|im_start|>assistant\n<think>'", "<functions></functions>"}},
    {"olmo3", kOlmo3, {"<|im_start|>", "function-calling AI assistant", "<functions></functions>"}},
    {"qwen3-thinking",
     kQwen3Thinking,
     {"<|im_start|>assistant\n<think>\n'", "<|im_end|>"},
     {"enable_thinking"}},
    {"qwen3", kQwen3, {"<|im_start|>", "enable_thinking", "</think>"}},
    {"qwen3-coder", kChatMl, {"<|im_start|>", "You are Qwen", "<function="}},
    {"phi4", kPhi4, {"<|im_start|>", "<|im_sep|>"}},
    {"smollm2", kSmolLm2, {"<|im_start|>", "named SmolLM"}},
    {"qwen2.5", kQwen2, {"<|im_start|>", "You are Qwen"}},
    {"chatml", kChatMl, {"<|im_start|>"}, {"<|im_middle|>"}},
    {"llama3.2", kLlama32, {"<|start_header_id|>", "Cutting Knowledge Date: "}},
    {"llama3", kLlama3, {"<|start_header_id|>", "<|eot_id|>"}},
    {"gemma3", kGemma3, {"<start_of_turn>", "first_user_prefix"}},
    {"gemma2", kGemma2, {"<start_of_turn>", "<end_of_turn>"}},
    {"gemma4", kGemma4, {"<|turn>", "<turn|>", "'<|channel>thought\n<channel|>'"}, {}, true},
    {"gemma4-e", kGemma4Small, {"<|turn>", "<turn|>"}, {}, true},
    {"phi3.5", kPhi35, {"<|user|>", "<|end|>", "<|system|>"}},
    {"phi3", kPhi3, {"<|user|>", "<|end|>"}},
    {"phi4-mini", kPhi4Mini, {"'<|'", "<|end|>", "<|assistant|>"}},
    {"granite3", kGranite3, {"<|start_of_role|>", "Knowledge Cutoff Date: April 2024.\nToday"}},
    {"granite3.3", kGranite33, {"<|start_of_role|>", "Knowledge Cutoff Date: April 2024. Today"}},
    {"granite4", kGranite4, {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"}},
    {"exaone4", kExaone4, {"[|endofturn|]", "role_indicators", "enable_thinking"}},
    {"ernie4.5", kErnie45, {"<|begin_of_sentence|>", "'User: '", "<|end_of_sentence|>"}},
    {"hunyuan-dense", kHunyuanDense, {HUNYUAN("User"), HUNYUAN("Assistant")}},
    {"olmo2", kOlmo2, {"'<|user|>\n' + message['content'] + '\n'", "<|assistant|>", "eos_token"}},
    {"zephyr", kZephyr, {"<|user|>\n", "<|assistant|>", "eos_token"}, {"[gMASK]", "<|endoftext|>"}},
    {"mistral-v7", kMistralV7, {"[INST]", "[SYSTEM_PROMPT]"}},
    {"mistral-v1", kMistralV1, {"' [INST] "}, {"<<SYS>>"}},
    {"mistral-nemo", kMistralNemo, {"'[INST]'"}, {"<<SYS>>"}},
    {"mistral-v3", kMistralV3, {"'[INST] '", "'[/INST]'"}, {"<<SYS>>"}},
    {"mistral-v2", kMistralV2, {"'[INST] '", " [/INST]"}, {"<<SYS>>"}},
    {"plain", kPlain},
};

/// Length of the match of `part` at the start of a text; 0: no match.
size_t matchBytes(const char* text, size_t bytes, const char* part) {
  size_t at = 0;
  for (; *part != '\0'; ++part, ++at) {
    if (at >= bytes) {
      return 0;
    }
    const char c = text[at];
    if (*part == '\n' && c == '\\' && at + 1 < bytes && text[at + 1] == 'n') {
      ++at;
    } else if (!(c == *part || (*part == '\'' && c == '"'))) {
      return 0;
    }
  }
  return at;
}

bool hasControlToken(const GgufFile& file, const char* name) {
  // Values of tokenizer.ggml.token_type.
  constexpr int64_t kControl = 3;
  constexpr int64_t kUserDefined = 4;
  GgufArray tokens;
  GgufArray types;
  if (!file.getArray("tokenizer.ggml.tokens", &tokens) ||
      !file.getArray("tokenizer.ggml.token_type", &types)) {
    return false;
  }
  GgufArrayReader token_reader(tokens);
  GgufArrayReader type_reader(types);
  GgufString token;
  int64_t type = 0;
  while (token_reader.nextString(&token) && type_reader.nextInt(&type)) {
    if ((type == kControl || type == kUserDefined) && token.equals(name)) {
      return true;
    }
  }
  return false;
}

}  // namespace

const char kOwnTemplateNames[] =
    "chatml, ernie4.5, exaone4, gemma2, gemma3, gemma4, gemma4-e, granite3, granite3.3, granite4, "
    "hunyuan-dense, lfm2, lfm2.5, lfm2.5-8b, llama3, llama3.2, minicpm5, mistral-v1, mistral-v2, "
    "mistral-v3, mistral-v7, mistral-nemo, olmo2, olmo3, olmo3-think, phi3, phi3.5, phi4, "
    "phi4-mini, plain, qwen2.5, qwen3, qwen3-coder, qwen3-thinking, qwen3.5, smollm2, smollm3, "
    "smollm3-undated, zephyr";

const OwnTemplate* ownTemplateByName(const char* name) {
  const auto* const row = std::find_if(
      std::begin(kRows), std::end(kRows),
      [&](const OwnTemplate& one) { return name != nullptr && std::strcmp(name, one.name) == 0; });
  return row != std::end(kRows) ? row : nullptr;
}

const OwnTemplate* recogniseTemplate(const char* text, size_t bytes) {
  bytes = std::min(bytes, kMaxChatTemplateBytes);
  const auto has = [&](const char* part) {
    return part == nullptr || templateContains(text, bytes, part);
  };
  const auto lacks = [&](const char* part) {
    return part == nullptr || !templateContains(text, bytes, part);
  };
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const OwnTemplate& one) {
        return one.has[0] != nullptr && std::all_of(std::begin(one.has), std::end(one.has), has) &&
               std::all_of(std::begin(one.lacks), std::end(one.lacks), lacks);
      });
  return row != std::end(kRows) ? row : nullptr;
}

const OwnTemplate* ownTemplateOfVocabulary(const GgufFile& file) {
  return hasControlToken(file, "<|im_start|>") && hasControlToken(file, "<|im_end|>")
             ? ownTemplateByName("chatml")
             : nullptr;
}

bool templateContains(const char* text, size_t bytes, const char* part) {
  for (size_t at = 0; at < bytes; ++at) {
    if (matchBytes(text + at, bytes - at, part) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace oriel_internal

#undef REPLY
#undef IF_WHOLE
#undef IF_NO_THINKING
#undef NO_THOUGHT
#undef THOUGHT_OR_NONE
#undef EACH
#undef END_EACH
#undef EACH_SAID
#undef END_SAID
#undef REFUSE_OTHER_ROLES
#undef REFUSE_LATER_SYSTEM
#undef IF_NO_SYSTEM
#undef GET_SYSTEM
#undef FIND_LAST
#undef CHATML_TURNS
#undef CHATML_SYSTEM
#undef CHATML_OPEN
#undef QWEN3_TURNS
#undef LFM2
#undef OLMO3_FUNCTIONS
#undef OLMO3_TURNS
#undef SMOLLM3
#undef JOINED
#undef GEMMA
#undef MISTRAL
#undef LLAMA3_HEAD
#undef LLAMA3_TURN
#undef GEMMA4
#undef GRANITE_HEAD
#undef GRANITE_TURN
#undef GRANITE3
#undef BAR
#undef BLANK
#undef HUNYUAN
#undef HUNYUAN_HOLDER
