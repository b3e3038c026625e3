// Steps through UTF-8 text. Bytes that are not UTF-8 count as one character each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace desktop::utf8 {

/// The character at `offset` (U+FFFD for a wrong byte) and where the next begins.
uint32_t decode(const std::string& text, size_t offset, size_t* next);
/// UTF-8 of a character up to U+FFFF.
std::string encode(uint32_t character);
/// Where the characters beside the one at `offset` begin; the ends of the text are their own neighbours.
size_t next(const std::string& text, size_t offset);
size_t previous(const std::string& text, size_t offset);
/// Where character number `count` begins; the text's size if it has fewer.
size_t offsetOf(const std::string& text, size_t count);

}  // namespace desktop::utf8
