// UTF-8 as characters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

/// Stands for what is no character.
constexpr char32_t kReplacement = 0xFFFD;

/// Bytes of a character that begins with `lead`; 1 also for what can begin none.
size_t characterBytes(unsigned char lead);

/// The character at *at, which goes on behind it: kReplacement where its bytes are not complete. Forms that are too long
/// and surrogates are taken as they are.
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

/// UTF-8 and back.
std::u32string charactersOf(std::string_view utf8);
std::string utf8Of(std::u32string_view characters);

}  // namespace cli
