// Steps through UTF-8 text. Bytes that are not UTF-8 count as one character each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace desktop::utf8 {

/// Decodes the character at `offset` (U+FFFD for a wrong byte). *next: offset of the next one.
uint32_t decode(const std::string& text, size_t offset, size_t* next);
/// UTF-8 of a character up to U+FFFF.
std::string encode(uint32_t character);
/// Offsets of the next and the previous character, within the text.
size_t next(const std::string& text, size_t offset);
size_t previous(const std::string& text, size_t offset);
/// Offset of character number `count`; the text's size if it has fewer.
size_t offsetOf(const std::string& text, size_t count);

}  // namespace desktop::utf8
