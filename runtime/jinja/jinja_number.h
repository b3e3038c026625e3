// Numbers as Python writes and reads them, whatever the locale.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {

constexpr size_t kMaxNumberBytes = 40;

/// A JSON number: an integer, a float, or what neither holds as it is written.
Value numberOf(const JsonValue& number);
/// repr() of a float: the fewest digits that give the same number again. Returns the bytes written.
size_t writeFloat(double value, char* out);
size_t writeInteger(int64_t value, char* out);
/// Digits with an optional sign; false when it is something else or needs more than 64 bits.
bool readInteger(const char* text, size_t bytes, uint32_t base, int64_t* value);
/// Python's float(): false when it is not a number.
bool readFloat(const char* text, size_t bytes, double* value);

}  // namespace oriel_internal::jinja
