// Renderings of messages in the form of their template, and places in what was written.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "chat/turn.h"

namespace oriel_internal {

/// Where the bytes of a message stand.
struct Span {
  size_t begin = SIZE_MAX;
  size_t last = SIZE_MAX;  ///< begin of the last range
  size_t end = 0;
  bool found() const { return begin != SIZE_MAX; }
  void add(const SourceRange& range) {
    begin = std::min(begin, range.begin);
    last = range.begin;
    end = range.end;
  }
};

/// The bytes that came with a message.
Span spanOf(const JinjaOutput& out, uint32_t index);

/// Bytes that two texts have in common, from the beginning and at the end.
size_t commonBytes(const JsonText& a, const char* b, size_t n_b);
size_t commonEnd(const JsonText& a, const JsonText& b);
bool beginsWith(const JsonText& text, const JsonText& begin);
bool endsWith(const JsonText& text, const JsonText& end);
/// Less of a text that ends in the middle of a mark: up to the last one that is whole.
size_t wholeMarks(const char* text, size_t bytes);

Status noTemplateMemory(const Log& log);

class Renderer {
 public:
  Renderer(TemplateRun* run, const LearnedTemplate& learned)
      : run_(*run), learned_(learned), make_(run->scratch()) {}

  /// A stand-in from each role.
  JsonMade* talkOf(std::initializer_list<const char*> roles);
  /// Errors are not logged.
  Status renderQuietly(JsonMade* messages, bool generation, JinjaOutput* out);
  Status renderPrepared(const JsonValue& messages, bool generation, const Log& log,
                        JinjaOutput* out);

 protected:
  TemplateRun& run_;
  const LearnedTemplate& learned_;
  JsonBuilder make_;
};

}  // namespace oriel_internal
