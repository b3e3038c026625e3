#include "text/chat.h"

#include <cstring>

namespace oriel {
namespace {

constexpr size_t kMaxRoleBytes = 32;
constexpr char kChatMlOpen[] = "<|im_start|>";
constexpr char kChatMlClose[] = "<|im_end|>\n";

bool contains(const GgufString& text, const char* part) {
  const size_t n_part = std::strlen(part);
  for (uint64_t at = 0; at + n_part <= text.bytes; ++at) {
    if (std::memcmp(text.data + at, part, n_part) == 0) {
      return true;
    }
  }
  return false;
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

/// Bytes of `role`, or 0 when it is not one.
size_t roleBytes(const char* role) {
  size_t n = 0;
  while (role != nullptr && n <= kMaxRoleBytes && role[n] != '\0') {
    if ((role[n] < 'a' || role[n] > 'z') && role[n] != '_') {
      return 0;
    }
    ++n;
  }
  return n <= kMaxRoleBytes ? n : 0;
}

char* append(char* to, const char* from, size_t bytes) {
  if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  return to + bytes;
}

}  // namespace

ChatFormat recogniseChatFormat(const GgufFile& file) {
  GgufString chat_template;
  if (file.getString("tokenizer.chat_template", &chat_template)) {
    return contains(chat_template, kChatMlOpen) ? ChatFormat::kChatMl : ChatFormat::kNone;
  }
  const bool has_tokens = hasControlToken(file, kChatMlOpen) && hasControlToken(file, "<|im_end|>");
  return has_tokens ? ChatFormat::kChatMl : ChatFormat::kNone;
}

const char* chatFormatName(ChatFormat format) {
  switch (format) {
    case ChatFormat::kNone:
      return "none";
    case ChatFormat::kChatMl:
      return "chatml";
  }
  return "none";
}

ChatFormat chatFormatByName(const char* name) {
  return name != nullptr && std::strcmp(name, "chatml") == 0 ? ChatFormat::kChatMl
                                                             : ChatFormat::kNone;
}

Status renderMessage(ChatFormat format, const char* role, const char* text, size_t bytes,
                     const Log& log, RenderedText* out) {
  out->needed = 0;
  out->literal = {};
  if (format == ChatFormat::kNone) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the model has no chat format known here: name one, or complete plain text");
  }
  const size_t n_role = roleBytes(role);
  if (n_role == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a role is 1 to %u letters a-z or underscores: use \"system\", \"user\" or "
                    "\"assistant\"",
                    static_cast<unsigned>(kMaxRoleBytes));
  }
  const size_t n_open = sizeof(kChatMlOpen) - 1;
  const size_t n_close = sizeof(kChatMlClose) - 1;
  const size_t before = n_open + n_role + 1;
  if (bytes > SIZE_MAX / 2) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a message is longer than memory: check its length");
  }
  out->needed = before + bytes + n_close;
  out->literal = {before, before + bytes};
  if (out->needed > out->capacity) {
    return ORIEL_ERROR_BUFFER_TOO_SMALL;
  }
  char* to = append(out->text, kChatMlOpen, n_open);
  to = append(to, role, n_role);
  *to++ = '\n';
  to = append(to, text, bytes);
  append(to, kChatMlClose, n_close);
  return kOk;
}

const char* generationPrompt(ChatFormat format) {
  return format == ChatFormat::kChatMl ? "<|im_start|>assistant\n" : "";
}

const char* replyEnd(ChatFormat format) {
  return format == ChatFormat::kChatMl ? kChatMlClose : "";
}

}  // namespace oriel
