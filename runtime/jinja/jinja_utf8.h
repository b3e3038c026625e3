// Characters that a template writes by their escape.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal::jinja {

constexpr uint32_t kNoEscape = 0xFFFFFFFF;    ///< a literal backslash
constexpr uint32_t kLineJoined = 0xFFFFFFFE;  ///< a backslash at a line end: nothing

/// A backslash escape as in Python literals. Returns its length, 0 if invalid.
size_t readEscape(const char* text, size_t bytes, uint32_t* code_point);

}  // namespace oriel_internal::jinja
