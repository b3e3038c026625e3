// Numbers as Python writes and reads them, in every locale.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {

constexpr size_t kMaxNumberBytes = 40;

/// A JSON number: an integer, a float, or kept as written if neither can hold it.
Value numberOf(const JsonValue& number);
/// repr() of a float: the fewest digits that round-trip. Returns the bytes written.
size_t writeFloat(double value, char* out);
size_t writeInteger(int64_t value, char* out);
/// Digits with an optional sign; false if it is anything else or exceeds 64 bits.
bool readInteger(const char* text, size_t bytes, uint32_t base, int64_t* value);
/// Python's float(): false if it is not a number.
bool readFloat(const char* text, size_t bytes, double* value);

}  // namespace oriel_internal::jinja
