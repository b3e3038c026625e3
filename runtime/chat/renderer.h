// Renders messages in the form of their template, and locates them in the output.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "chat/turn.h"

namespace oriel_internal {

/// The byte range of a message.
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

/// The bytes that came from a message.
Span spanOf(const JinjaOutput& out, uint32_t index);

/// Length of the common prefix and suffix of two texts.
size_t commonBytes(const JsonText& a, const char* b, size_t n_b);
size_t commonEnd(const JsonText& a, const JsonText& b);
bool beginsWith(const JsonText& text, const JsonText& begin);
bool endsWith(const JsonText& text, const JsonText& end);
/// Shortens a text that ends inside a mark to the end of the last whole mark.
size_t wholeMarks(const char* text, size_t bytes);

Status noTemplateMemory(const Log& log);

class Renderer {
 public:
  Renderer(TemplateRun* run, const LearnedTemplate& learned)
      : run_(*run), learned_(learned), make_(run->scratch()) {}

  /// One stand-in message per role.
  JsonMade* talkOf(std::initializer_list<const char*> roles);
  /// Errors are not logged.
  Status renderQuietly(JsonMade* messages, bool generation, JinjaOutput* out);
  /// The text for a picture has its message as its source.
  Status renderPrepared(const JsonValue& messages, bool generation, const Log& log,
                        JinjaOutput* out);

 private:
  Status claimPictures(const JsonValue& messages, const Log& log, JinjaOutput* out);

 protected:
  TemplateRun& run_;
  const LearnedTemplate& learned_;
  JsonBuilder make_;
};

}  // namespace oriel_internal
