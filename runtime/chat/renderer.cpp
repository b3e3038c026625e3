#include "chat/turn.h"

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
  const PictureWords pictures = run_.settings().pictures;
  ORIEL_TRY(prepareMessages(learned_.facts, messages, run_.scratch(), log, &prepared, pictures));
  ORIEL_TRY(run_.render(*prepared, generation, log, out));
  return pictures != PictureWords::kNone ? claimPictures(messages, log, out) : Status(kOk);
}

// The n-th placeholder in the template's own text belongs to the n-th picture of the messages.
Status Renderer::claimPictures(const JsonValue& messages, const Log& log, JinjaOutput* out) {
  size_t count = 0;
  const auto forEach = [&](const auto& visit) {
    TextOrigin source = kFirstMessageSource;
    for (const JsonValue* one = messages.first(); one != nullptr; one = one->next(), ++source) {
      ORIEL_TRY(forEachPicture(*one, [&](const JsonValue&) { return visit(source); }));
    }
    return Status(kOk);
  };
  ORIEL_TRY(forEach([&](TextOrigin) {
    ++count;
    return kOk;
  }));
  if (count == 0) {
    return kOk;
  }
  SourceRange* const ranges = run_.scratch()->take<SourceRange>(out->n_ranges + 2 * count + 1);
  if (ranges == nullptr) {
    return noTemplateMemory(log);
  }
  const char* const placeholder = rowOf(run_.settings().pictures).placeholder;
  const size_t bytes = std::strlen(placeholder);
  size_t n = 0;
  size_t next = 0;  // of out->ranges
  size_t at = 0;
  const Status found = forEach([&](TextOrigin source) -> Status {
    for (;; ++at) {
      for (; next < out->n_ranges && out->ranges[next].begin <= at; ++next) {
        ranges[n++] = out->ranges[next];
        at = out->ranges[next].end;
      }
      const size_t end = next < out->n_ranges ? out->ranges[next].begin : out->bytes;
      const char* const place =
          std::search(out->text + at, out->text + end, placeholder, placeholder + bytes);
      at = static_cast<size_t>(place - out->text);
      if (at != end) {
        ranges[n++] = {at, at + bytes, source, true};
        at += bytes;
        return kOk;
      }
      if (end == out->bytes) {
        return ORIEL_ERROR_UNSUPPORTED;
      }
      --at;
    }
  });
  if (!found.ok()) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the chat template has no place for %zu pictures: name another (\"template\")",
                    count);
  }
  n = static_cast<size_t>(std::copy(out->ranges + next, out->ranges + out->n_ranges, ranges + n) -
                          ranges);
  out->ranges = ranges;
  out->n_ranges = n;
  return kOk;
}

}  // namespace oriel_internal
