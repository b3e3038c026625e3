// Tests, used after `is`.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kUnknown: no test has that name.
uint16_t testNamed(const JsonText& name);
/// Enumerates all names; null at the end.
const char* testName(uint16_t test);
bool applyTest(Interpreter* run, uint16_t test, const Value& of, const Args& args, bool* holds);

}  // namespace oriel_internal::jinja
