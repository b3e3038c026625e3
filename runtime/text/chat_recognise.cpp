// Which chat format a Jinja template writes, seen by the markers in its text.
#include <algorithm>
#include <cstring>

#include "text/chat.h"

namespace oriel_internal {
namespace {

/// A format whose template holds all of `has` and none of `lacks`.
struct MarkerRule {
  const char* format;
  const char* has[3];
  const char* lacks[2];
};

// The first that holds counts.
constexpr MarkerRule kRules[] = {
    {"smollm3", {"<|im_start|>", "Reasoning Mode: ", "Today Date: "}, {}},
    {"smollm3-undated", {"<|im_start|>", "Reasoning Mode: "}, {}},
    {"qwen3.5", {"<|im_start|>", "System message must be at the beginning", "enable_thinking"}, {}},
    {"minicpm5", {"<|im_start|>", "enable_thinking", "<tool_sep>"}, {}},
    {"lfm2.5", {"<|im_start|>", "List of tools: ", "keep_past_thinking"}, {}},
    {"lfm2.5-8b", {"<|im_start|>", "List of tools: ", "preserve_thinking"}, {}},
    {"lfm2", {"<|im_start|>", "List of tools: "}, {}},
    {"olmo3-think", {"<|im_start|>assistant\n<think>'", "<functions></functions>"}, {}},
    {"olmo3", {"<|im_start|>", "function-calling AI assistant", "<functions></functions>"}, {}},
    {"qwen3-thinking", {"<|im_start|>assistant\n<think>\n'", "<|im_end|>"}, {"enable_thinking"}},
    {"qwen3", {"<|im_start|>", "enable_thinking", "</think>"}, {}},
    {"qwen3-coder", {"<|im_start|>", "You are Qwen", "<function="}, {}},
    {"phi4", {"<|im_start|>", "<|im_sep|>"}, {}},
    {"smollm2", {"<|im_start|>", "named SmolLM"}, {}},
    {"qwen2.5", {"<|im_start|>", "You are Qwen"}, {}},
    {"chatml", {"<|im_start|>"}, {"<|im_middle|>"}},
    {"llama3.2", {"<|start_header_id|>", "Cutting Knowledge Date: "}, {}},
    {"llama3", {"<|start_header_id|>", "<|eot_id|>"}, {}},
    {"gemma3", {"<start_of_turn>", "first_user_prefix"}, {}},
    {"gemma2", {"<start_of_turn>", "<end_of_turn>"}, {}},
    {"gemma4", {"<|turn>", "<turn|>", "'<|channel>thought\n<channel|>'"}, {}},
    {"gemma4-e", {"<|turn>", "<turn|>"}, {}},
    {"phi3.5", {"<|user|>", "<|end|>", "<|system|>"}, {}},
    {"phi3", {"<|user|>", "<|end|>"}, {}},
    {"phi4-mini", {"'<|'", "<|end|>", "<|assistant|>"}, {}},
    {"granite3", {"<|start_of_role|>", "Knowledge Cutoff Date: April 2024.\nToday"}, {}},
    {"granite3.3", {"<|start_of_role|>", "Knowledge Cutoff Date: April 2024. Today"}, {}},
    {"granite4", {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"}, {}},
    {"exaone4", {"[|endofturn|]", "role_indicators", "enable_thinking"}, {}},
    {"ernie4.5", {"<|begin_of_sentence|>", "'User: '", "<|end_of_sentence|>"}, {}},
    {"hunyuan-dense",
     {"<\xEF\xBD\x9Chy_User\xEF\xBD\x9C>", "<\xEF\xBD\x9Chy_Assistant\xEF\xBD\x9C>"},
     {}},
    {"olmo2", {"'<|user|>\n' + message['content'] + '\n'", "<|assistant|>", "eos_token"}, {}},
    {"zephyr", {"<|user|>\n", "<|assistant|>", "eos_token"}, {"[gMASK]", "<|endoftext|>"}},
    {"mistral-v7", {"[INST]", "[SYSTEM_PROMPT]"}, {}},
    {"mistral-v1", {"' [INST] "}, {"<<SYS>>"}},
    {"mistral-nemo", {"'[INST]'"}, {"<<SYS>>"}},
    {"mistral-v3", {"'[INST] '", "'[/INST]'"}, {"<<SYS>>"}},
    {"mistral-v2", {"'[INST] '", " [/INST]"}, {"<<SYS>>"}},
};

struct Span {
  const char* data;
  size_t bytes;
  Span from(size_t at) const { return {data + at, bytes - at}; }
};

/// Bytes of `text` that `part` matches at its beginning; 0: none.
size_t matchBytes(Span text, const char* part) {
  size_t at = 0;
  for (; *part != '\0'; ++part, ++at) {
    if (at >= text.bytes) {
      return 0;
    }
    const char c = text.data[at];
    if (*part == '\n' && c == '\\' && at + 1 < text.bytes && text.data[at + 1] == 'n') {
      ++at;
    } else if (!(c == *part || (*part == '\'' && c == '"'))) {
      return 0;
    }
  }
  return at;
}

/// The first match of `part`: its place, and how long it is (0: none).
size_t find(Span text, const char* part, size_t* match_bytes) {
  for (size_t at = 0; at < text.bytes; ++at) {
    *match_bytes = matchBytes(text.from(at), part);
    if (*match_bytes != 0) {
      return at;
    }
  }
  *match_bytes = 0;
  return text.bytes;
}

bool contains(Span text, const char* part) {
  size_t match_bytes = 0;
  (void)find(text, part, &match_bytes);
  return match_bytes != 0;
}

/// Copies a string of the template without its escapes; false when it does not fit or is no plain string. Where
/// it is joined with `today`, *date_at says so.
bool copyPlainString(Span text, char* out, size_t capacity, uint32_t* bytes, int32_t* date_at) {
  size_t n = 0;
  for (size_t at = 0; at < text.bytes; ++at, ++n) {
    if (const size_t joint = matchBytes(text.from(at), "' + today + '"); joint != 0) {
      if (*date_at >= 0) {
        return false;
      }
      *date_at = static_cast<int32_t>(n);
      at += joint;
      if (at == text.bytes) {
        break;
      }
    }
    char c = text.data[at];
    const bool code =
        c == '{' && at + 1 < text.bytes && (text.data[at + 1] == '{' || text.data[at + 1] == '%');
    if (n == capacity || code) {
      return false;
    }
    if (c == '\\' && at + 1 < text.bytes) {
      c = text.data[++at];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
    out[n] = c;
  }
  *bytes = static_cast<uint32_t>(n);
  return true;
}

/// Models of one format differ in the system prompt that they put first by default. Linear in the text: where a
/// prompt ends is looked for once only, and what cannot be one is not copied.
void readDefaultSystem(Span text, const DefaultSystemMarks& marks, ChatTemplate* chat) {
  // A byte of a prompt is written as two at most. Real templates write one prompt, and few strings like it.
  constexpr size_t kMostSourceBytes = 2 * ChatTemplate::kMaxDefaultSystem;
  constexpr uint32_t kMostCopies = 64;
  uint32_t copies = 0;
  size_t match_bytes = 0;
  size_t end = 0;  // of the latest prompt; the next one ends there, too, unless it begins behind it
  bool end_known = false;
  for (size_t at = 0; at < text.bytes && copies < kMostCopies; ++at) {
    at += find(text.from(at), marks.before, &match_bytes);
    if (match_bytes == 0) {
      return;
    }
    const size_t begin = at + match_bytes;
    if (!end_known || end < begin) {
      size_t after_bytes = 0;
      end_known = true;
      end = begin + find(text.from(begin), marks.after, &after_bytes);
      if (after_bytes == 0) {
        return;  // nor behind any later beginning
      }
    }
    const Span inside = {text.data + begin, end - begin};
    // A quote right away: the string ends there, and what follows is code.
    const bool is_text = inside.bytes != 0 && inside.data[0] != '\'' && inside.data[0] != '"';
    const bool begins = *marks.begins == '\0' || matchBytes(text.from(begin), marks.begins) != 0;
    if (!begins || !is_text || inside.bytes > kMostSourceBytes) {
      continue;
    }
    ++copies;
    chat->default_system_date = -1;
    if (copyPlainString(inside, chat->default_system, sizeof(chat->default_system),
                        &chat->default_system_bytes, &chat->default_system_date)) {
      return;
    }
    chat->default_system_date = -1;
  }
}

/// Text of the token whose id is in `key`.
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

bool hasControlToken(const GgufFile& file, const char* name) {
  // Numbers of tokenizer.ggml.token_type.
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

ChatTemplate chatTemplateOf(const ChatFormat& format) {
  ChatTemplate chat;
  chat.format = &format;
  chat.always_generates = format.always_generates;
  chat.writes_end = format.end[0] != '\0';
  std::strncpy(chat.begin, format.begin, sizeof(chat.begin) - 1);
  return chat;
}

ChatTemplate recogniseChatTemplate(const char* data, size_t bytes) {
  const Span text = {data, std::min(bytes, kMaxChatTemplateBytes)};
  for (const MarkerRule& rule : kRules) {
    bool holds = true;
    for (const char* part : rule.has) {
      holds = holds && (part == nullptr || contains(text, part));
    }
    for (const char* part : rule.lacks) {
      holds = holds && (part == nullptr || !contains(text, part));
    }
    if (!holds) {
      continue;
    }
    const ChatFormat& format = *chatFormatByName(rule.format);
    ChatTemplate chat = chatTemplateOf(format);
    chat.always_generates = format.always_generates && !contains(text, "add_generation_prompt");
    chat.writes_end = chat.writes_end && contains(text, "eos_token");
    if (format.marks != nullptr) {
      readDefaultSystem(text, *format.marks, &chat);
    }
    return chat;
  }
  return chatTemplateOf(*chatFormatByName("plain"));
}

void keepTemplate(Arena* arena, ChatTemplate* chat) {
  // Of one that is too long to run so much that it still is.
  const size_t bytes = std::min(chat->jinja_bytes, kMaxChatTemplateBytes + 1);
  char* const copy = bytes != 0 ? arena->take<char>(bytes) : nullptr;
  if (copy != nullptr) {
    std::memcpy(copy, chat->jinja, bytes);
    chat->jinja = copy;
    chat->jinja_bytes = bytes;
  }
}

ChatTemplate recogniseChat(const GgufFile& file) {
  GgufString text;
  if (!file.getString("tokenizer.chat_template", &text) || text.bytes == 0) {
    const bool has_tokens =
        hasControlToken(file, "<|im_start|>") && hasControlToken(file, "<|im_end|>");
    return has_tokens ? chatTemplateOf(*chatFormatByName("chatml")) : ChatTemplate();
  }
  ChatTemplate chat = recogniseChatTemplate(text.data, text.bytes);
  readToken(file, "tokenizer.ggml.eos_token_id", chat.eos);
  readToken(file, "tokenizer.ggml.bos_token_id", chat.bos);
  const Span read = {text.data, std::min<size_t>(text.bytes, kMaxChatTemplateBytes)};
  if (chat.begin[0] == '\0' && contains(read, "bos_token")) {
    std::memcpy(chat.begin, chat.bos, sizeof(chat.begin));
  }
  chat.jinja = text.data;
  chat.jinja_bytes = static_cast<size_t>(text.bytes);
  return chat;
}

Status chooseChat(const ChatTemplate& own, const char* wanted, const Log& log, ChatTemplate* out) {
  if (wanted == nullptr) {
    *out = own;
    return kOk;
  }
  if (const ChatFormat* format = chatFormatByName(wanted); format != nullptr) {
    *out = chatTemplateOf(*format);
    return kOk;
  }
  // Jinja text has a brace somewhere; no name has.
  const size_t bytes = std::strlen(wanted);
  if (!contains({wanted, bytes}, "{")) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "\"%.64s\" is no chat format: use one of %s", wanted,
                    kChatFormatNames);
  }
  *out = recogniseChatTemplate(wanted, bytes);
  std::memcpy(out->eos, own.eos, sizeof(out->eos));
  std::memcpy(out->bos, own.bos, sizeof(out->bos));
  if (out->begin[0] == '\0' && contains({wanted, bytes}, "bos_token")) {
    std::memcpy(out->begin, own.bos, sizeof(out->begin));
  }
  out->jinja = wanted;
  out->jinja_bytes = bytes;
  return kOk;
}

}  // namespace oriel_internal
