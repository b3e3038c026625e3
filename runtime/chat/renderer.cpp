#include "chat/renderer.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {

Span spanOf(const JinjaOutput& out, uint32_t index) {
  Span span;
  for (size_t i = 0; i < out.n_ranges; ++i) {
    const SourceRange& range = out.ranges[i];
    if (range.source == kFirstMessageSource + index) {
      span.add(range);
    }
  }
  return span;
}

size_t commonBytes(const JsonText& a, const char* b, size_t n_b) {
  const size_t most = std::min<size_t>(a.bytes, n_b);
  return static_cast<size_t>(std::mismatch(a.data, a.data + most, b).first - a.data);
}

size_t commonEnd(const JsonText& a, const JsonText& b) {
  const size_t most = std::min(a.bytes, b.bytes);
  size_t same = 0;
  while (same < most && a.data[a.bytes - same - 1] == b.data[b.bytes - same - 1]) {
    ++same;
  }
  return same;
}

size_t wholeMarks(const char* text, size_t bytes) {
  while (bytes != 0 && std::strchr(">]\n", text[bytes - 1]) == nullptr) {
    --bytes;
  }
  return bytes;
}

bool endsWith(const JsonText& text, const JsonText& end) {
  return end.bytes != 0 && end.bytes <= text.bytes &&
         std::memcmp(text.data + text.bytes - end.bytes, end.data, end.bytes) == 0;
}

bool beginsWith(const JsonText& text, const JsonText& begin) {
  return commonBytes(begin, text.data, text.bytes) == begin.bytes;
}

Status noTemplateMemory(const Log& log) {
  return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to run the chat template: free some");
}

JsonMade* Renderer::talkOf(std::initializer_list<const char*> roles) {
  JsonMade* const list = make_.list();
  for (const char* role : roles) {
    make_.append(list, make_.message(role, kStandIn));
  }
  return list;
}

Status Renderer::renderQuietly(JsonMade* messages, bool generation, JinjaOutput* out) {
  if (messages == nullptr || run_.scratch()->failed()) {
    return noTemplateMemory(Log());
  }
  return renderPrepared(*messages, generation, Log(), out);
}

Status Renderer::renderPrepared(const JsonValue& messages, bool generation, const Log& log,
                                JinjaOutput* out) {
  const JsonValue* prepared = nullptr;
  ORIEL_TRY(prepareMessages(learned_.facts, messages, run_.scratch(), log, &prepared));
  return run_.render(*prepared, generation, log, out);
}

}  // namespace oriel_internal
