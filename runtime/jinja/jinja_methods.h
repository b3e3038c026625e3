// Methods of Python's strings, lists and dicts.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// Which method a name stands for; 0: none.
uint8_t attributeNamed(const JsonText& name);
/// All of them, from 1 on; null behind the last.
const char* methodName(uint8_t attribute);
/// Whether a value of that kind has it.
bool hasMethod(const Value& of, uint8_t attribute);
/// The value has it.
bool callMethod(Interpreter* run, const Value& of, const Symbol& method, const Args& args,
                Value* out);

}  // namespace oriel_internal::jinja
