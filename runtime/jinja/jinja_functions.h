// Global functions of templates.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

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

}  // namespace oriel_internal::jinja
