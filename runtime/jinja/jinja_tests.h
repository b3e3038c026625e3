// What may stand behind `is`.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kUnknown: there is none of that name.
uint16_t testNamed(const JsonText& name);
bool applyTest(Interpreter* run, uint16_t test, const Value& of, const Args& args, bool* holds);

}  // namespace oriel_internal::jinja
