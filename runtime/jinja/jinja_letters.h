// Strings whose letters change, and how Python cuts lines.
#pragma once

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kTitle is Python's title(), kWords the filter title.
enum class Letters : uint8_t { kUpper, kLower, kTitle, kWords, kCapitalize, kSwap };
bool mapLetters(Interpreter* run, const Value& text, Letters how, Value* out);
/// Python's strip(): `chars` null or none for white space. `left`, `right`: which ends.
bool strip(Interpreter* run, const Value& text, const Value* chars, bool left, bool right,
           Value* out);
/// Where the line that begins at `begin` ends; *next is where the one after begins.
size_t lineEnd(const Str& text, size_t begin, size_t* next);
/// Python's replace().
bool replace(Interpreter* run, const Value& text, const Value& old, const Value& by, int64_t most,
             Value* out);

}  // namespace oriel_internal::jinja
