#include "terminal/characters.h"

namespace cli {

size_t characterBytes(unsigned char lead) {
  return lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
}

char32_t nextCharacter(std::string_view utf8, size_t* at) {
  const auto lead = static_cast<unsigned char>(utf8[*at]);
  const size_t wanted = characterBytes(lead);
  char32_t character = wanted == 1 ? lead : lead & (0xFFu >> (wanted + 1));
  size_t taken = 1;
  while (taken < wanted && *at + taken < utf8.size() &&
         (static_cast<unsigned char>(utf8[*at + taken]) & 0xC0) == 0x80) {
    character = character << 6 | (static_cast<unsigned char>(utf8[*at + taken]) & 0x3Fu);
    ++taken;
  }
  *at += taken;
  return taken == wanted && (wanted > 1 || lead < 0x80) ? character : kReplacement;
}

std::u32string charactersOf(std::string_view utf8) {
  std::u32string characters;
  for (size_t at = 0; at < utf8.size();) {
    const size_t begin = at;
    const char32_t character = nextCharacter(utf8, &at);
    const size_t bytes = at - begin;
    const bool overlong = (bytes == 3 && character < 0x800) || (bytes == 4 && character < 0x10000);
    const bool surrogate = character >= 0xD800 && character < 0xE000;
    characters += overlong || surrogate || character >= 0x110000 ? kReplacement : character;
  }
  return characters;
}

std::string utf8Of(std::u32string_view characters) {
  std::string utf8;
  for (const char32_t c : characters) {
    if (c < 0x80) {
      utf8 += static_cast<char>(c);
    } else if (c < 0x800) {
      utf8 += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    } else if (c < 0x10000) {
      utf8 += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      utf8 += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
               static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  return utf8;
}

}  // namespace cli
