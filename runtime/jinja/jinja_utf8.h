// Character escapes of templates, and Python's letter case.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal::jinja {

constexpr uint32_t kNoEscape = 0xFFFFFFFF;    ///< a literal backslash
constexpr uint32_t kLineJoined = 0xFFFFFFFE;  ///< a backslash at a line end: nothing

/// A backslash escape as in Python literals. Returns its length, 0 if invalid.
size_t readEscape(const char* text, size_t bytes, uint32_t* code_point);

/// The other case of a letter, or the letter itself. Covers Latin, Greek, Cyrillic, Armenian and full-width letters that
/// map to one letter.
uint32_t toUpper(uint32_t code_point);
uint32_t toLower(uint32_t code_point);

}  // namespace oriel_internal::jinja
