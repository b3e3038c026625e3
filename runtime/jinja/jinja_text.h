// Strings that track the source of each byte.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {

/// A readable view of a string. The original must stay alive.
struct Str {
  const char* data = "";
  size_t bytes = 0;
  TextOrigin source = 0;
  Runs* runs = nullptr;
  uint32_t offset = 0;

  char operator[](size_t at) const { return data[at]; }
  bool is(const char* other) const;
};

/// The view of a string value.
Str strOf(const Value& value);
bool equal(Heap* heap, const Str& a, const Str& b);
/// Below, at or above 0. Comparing bytes is comparing code points.
int compare(Heap* heap, const Str& a, const Str& b);
constexpr size_t kNotFound = SIZE_MAX;
/// The first occurrence of `part` at or after `from`. Subtracts compared bytes from `work` and gives up at 0.
size_t find(const Str& text, const Str& part, size_t from, uint64_t* work);
/// The last occurrence of `part` that ends at or before `end`.
size_t findLast(const Str& text, const Str& part, size_t end, uint64_t* work);
/// Code points; invalid UTF-8 counts by bytes.
size_t countChars(Heap* heap, const Str& text);
/// The start of the next character.
size_t nextChar(const Str& text, size_t at);
size_t previousChar(const Str& text, size_t at);
/// Python's str.isspace().
bool isSpace(uint32_t code_point);
/// skipSpace(): end of the white space that begins at `at`. The other: start of the white space that ends at `end`.
size_t skipSpace(const char* data, size_t bytes, size_t at);
size_t spaceBefore(const char* data, size_t end);

/// The bytes [begin, end) of a string, without copying. Undefined if memory ran out (heap->failed()).
Value sub(Heap* heap, const Value& text, size_t begin, size_t end);

/// Calls `visit(begin, end, source)` for each run of [begin, end) of a string.
template <typename Visit>
void forEachRun(const Str& text, size_t begin, size_t end, const Visit& visit) {
  if (text.runs == nullptr || begin == end) {
    if (begin != end) {
      visit(begin, end, text.source);
    }
    return;
  }
  const Run* const run = text.runs->run();
  uint32_t low = 0;
  uint32_t high = text.runs->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (run[middle].end <= begin + text.offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; begin < end && low < text.runs->count; ++low) {
    const size_t run_end = run[low].end - text.offset;
    const size_t stop = run_end < end ? run_end : end;
    visit(begin, stop, run[low].source);
    begin = stop;
  }
}

/// Builds a string. After memory ran out it drops everything, and finish() fails.
class TextBuilder {
 public:
  explicit TextBuilder(Heap* heap) : heap_(heap) {}
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  void reserve(size_t bytes);
  void append(const char* data, size_t bytes, TextOrigin source);
  void append(const char* text, TextOrigin source);
  void append(const Str& text) { append(text, 0, text.bytes); }
  void append(const Str& text, size_t begin, size_t end);
  size_t bytes() const { return buffer_ ? buffer_->used : 0; }
  bool failed() const { return failed_; }
  /// Returns the text and empties the builder. False: out of memory.
  bool finish(Value* text);
  /// The text so far, valid until the next write.
  Str written() const;

 private:
  bool makeRoom(size_t bytes);
  bool note(size_t bytes, TextOrigin source);
  bool growRuns();

  Heap* const heap_;
  Ref<Buffer> buffer_;
  Ref<Runs> runs_;
  TextOrigin source_ = 0;
  bool failed_ = false;
};

/// a + b. Copies only b if a was the last string appended to. False: out of memory.
bool concat(Heap* heap, const Value& a, const Value& b, Value* out);

// Characters that a template writes by their escape.

constexpr uint32_t kNoEscape = 0xFFFFFFFF;    ///< a literal backslash
constexpr uint32_t kLineJoined = 0xFFFFFFFE;  ///< a backslash at a line end: nothing

/// A backslash escape as in Python literals. Returns its length, 0 if invalid.
size_t readEscape(const char* text, size_t bytes, uint32_t* code_point);

}  // namespace oriel_internal::jinja
