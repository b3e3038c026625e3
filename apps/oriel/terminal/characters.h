// Iterates over UTF-8 characters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

/// Stands for invalid bytes.
constexpr char32_t kReplacement = 0xFFFD;

/// Length of a character that begins with `lead`; also 1 for invalid bytes.
size_t characterBytes(unsigned char lead);

/// Reads the character at *at and advances: kReplacement for incomplete bytes. Accepts overlong forms and surrogates.
char32_t nextCharacter(std::string_view utf8, size_t* at);

/// Characters from `first` to `last`.
struct CharacterRange {
  char32_t first;
  char32_t last;
};
template <size_t N>
bool isIn(const CharacterRange (&ranges)[N], char32_t character) {
  return std::any_of(ranges, ranges + N, [character](const CharacterRange& range) {
    return character >= range.first && character <= range.last;
  });
}

/// Converts from and to UTF-8.
std::u32string charactersOf(std::string_view utf8);
std::string utf8Of(std::u32string_view characters);

}  // namespace cli
