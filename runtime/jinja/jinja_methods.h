// Letter case of strings, and Python's line splitting.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kTitle is Python's title(), kWords the filter title.
enum class Letters : uint8_t { kUpper, kLower, kTitle, kWords, kCapitalize, kSwap };
bool mapLetters(Interpreter* run, const Value& text, Letters how, Value* out);
/// Python's strip(); null or undefined `chars` means white space. `left` and `right` select the ends.
bool strip(Interpreter* run, const Value& text, const Value* chars, bool left, bool right,
           Value* out);
/// End of the line that begins at `begin`; *next is the start of the next line.
size_t lineEnd(const Str& text, size_t begin, size_t* next);
/// Python's replace().
bool replace(Interpreter* run, const Value& text, const Value& old, const Value& by, int64_t most,
             Value* out);

// Python's methods of strings, lists and dicts.

/// The method of that name; 0: none.
uint8_t attributeNamed(const JsonText& name);
/// Enumerates all names from 1; null past the last.
const char* methodName(uint8_t attribute);
/// True if a value of that kind has it.
bool hasMethod(const Value& of, uint8_t attribute);
/// The value must have the method.
bool callMethod(Interpreter* run, const Value& of, const Symbol& method, const Args& args,
                Value* out);

}  // namespace oriel_internal::jinja
