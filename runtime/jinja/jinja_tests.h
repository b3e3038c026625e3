// What may stand behind `is`.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kUnknown: there is none of that name.
uint16_t testNamed(const JsonText& name);
/// All of them, one after another; null behind the last.
const char* testName(uint16_t test);
bool applyTest(Interpreter* run, uint16_t test, const Value& of, const Args& args, bool* holds);

}  // namespace oriel_internal::jinja
