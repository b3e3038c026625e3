#include "api/session_texts.h"

#include <cstring>
#include <new>

#include "base/hash.h"
#include "base/scratch.h"

namespace oriel_internal {
namespace {

struct Text {
  const char** text;
  size_t bytes;
};

}  // namespace

Status SessionTexts::copy(const oriel_allocator& allocator, const Log& log,
                          SessionSettings* settings, SessionTexts** out) {
  const SessionSettings none = {};
  *out = nullptr;
  if (std::memcmp(settings, &none, sizeof(none)) == 0) {
    return kOk;
  }
  ChatSettings& chat = settings->chat;
  const Text texts[] = {
      {&chat.chat_template, chat.chat_template != nullptr ? std::strlen(chat.chat_template) : 0},
      {&chat.tools, chat.tools_bytes},
      {&chat.documents, chat.documents_bytes},
      {&chat.variables, chat.variables_bytes},
      {&settings->adapters, settings->adapters != nullptr ? std::strlen(settings->adapters) : 0}};
  uint64_t bytes = sizeof(SessionTexts);
  for (const Text& one : texts) {
    bytes += one.bytes + 1;
  }
  void* const block = allocateZeroed(allocator, bytes);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes for the session's texts: close other programs",
                    static_cast<unsigned long long>(bytes));
  }
  auto* const made = new (block) SessionTexts();
  made->bytes = bytes;
  char* to = static_cast<char*>(block) + sizeof(SessionTexts);
  for (const Text& one : texts) {
    if (*one.text != nullptr) {
      std::memcpy(to, *one.text, one.bytes);
      *one.text = to;
    }
    to += one.bytes + 1;
  }
  made->settings = *settings;
  *out = made;
  return kOk;
}

SessionTexts* SessionTexts::share(SessionTexts* texts) {
  if (texts != nullptr) {
    texts->owners.fetch_add(1);
  }
  return texts;
}

void SessionTexts::drop(const oriel_allocator& allocator, SessionTexts* texts) {
  if (texts != nullptr && texts->owners.fetch_sub(1) == 1) {
    const uint64_t bytes = texts->bytes;
    texts->~SessionTexts();
    wipe(texts, bytes);
    release(allocator, texts, bytes);
  }
}

}  // namespace oriel_internal
