// Characters that a template writes by their escape.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal::jinja {

constexpr uint32_t kNoEscape = 0xFFFFFFFF;    ///< the backslash stands for itself
constexpr uint32_t kLineJoined = 0xFFFFFFFE;  ///< a backslash at the end of a line: nothing

/// A backslash and what follows, as in Python's literals. Returns the bytes taken, 0 for a wrong one.
size_t readEscape(const char* text, size_t bytes, uint32_t* code_point);

}  // namespace oriel_internal::jinja
