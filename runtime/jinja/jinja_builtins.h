// Functions, filters, methods, JSON and ordering of values in templates.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

// Ordering of values.

/// Stable sort of `items` by `keys`. The caller must own both exclusively.
bool sortBy(Interpreter* run, List* keys, List* items, bool reverse);
/// Sorts a dict's pairs by key.
bool sortPairs(Interpreter* run, List* pairs);
/// Lowercases strings; other values are unchanged.
bool foldCase(Interpreter* run, const Value& value, Value* out);

// Values as JSON, in the style of Python's json.dumps().

/// The filter tojson: ensure_ascii, indent, separators, sort_keys.
bool filterTojson(Interpreter* run, const Value& in, const Args& args, Value* out);

// Python's string formatting.

/// str.format(): {}, {0}, {name}, {{ and }}; without width and conversion.
bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out);

// Filters by name.

/// kUnknown: no filter has that name.
uint16_t filterNamed(const JsonText& name);
/// Enumerates all names; null at the end.
const char* filterName(uint16_t filter);
bool applyFilter(Interpreter* run, uint16_t filter, const Value& in, const Args& args, Value* out);

// Of texts.
bool filterTrim(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterReplace(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterIndent(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterTruncate(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterFormat(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterEscape(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterWordcount(Interpreter* run, const Value& in, const Args& args, Value* out);
// In jinja_filters_list.cpp.
bool filterMap(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSelect(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterReject(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSelectattr(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterRejectattr(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSort(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterDictsort(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterUnique(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterMin(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterMax(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSum(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterJoin(Interpreter* run, const Value& in, const Args& args, Value* out);
/// A list that can be iterated once.
bool giveGenerator(Interpreter* run, Ref<List> list, Value* out);
bool filterReverse(Interpreter* run, const Value& in, const Args& args, Value* out);

// Global functions of templates.

constexpr uint32_t kNoFunction = 0xFFFFFFFF;
/// The name of function `id`; null past the last.
const char* functionName(uint32_t id);
bool callFunction(Interpreter* run, uint32_t id, const Args& args, Value* out);
/// Python's strftime(), in English, at noon.
bool writeTime(Interpreter* run, const Str& format, TextBuilder* out);

// Tests, used after `is`.

/// kUnknown: no test has that name.
uint16_t testNamed(const JsonText& name);
/// Enumerates all names; null at the end.
const char* testName(uint16_t test);
bool applyTest(Interpreter* run, uint16_t test, const Value& of, const Args& args, bool* holds);

// Letter case of strings, and Python's line splitting.

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
