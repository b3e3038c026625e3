#include "chat/chat_template.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

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

}  // namespace oriel_internal
