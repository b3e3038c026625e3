// Python's methods of strings, lists and dicts.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

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
