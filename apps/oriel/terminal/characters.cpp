#include "terminal/characters.h"

namespace cli {

size_t characterBytes(unsigned char lead) {
  return lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
}

std::u32string charactersOf(std::string_view utf8) {
  std::u32string characters;
  for (size_t at = 0; at < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[at]);
    const size_t length = characterBytes(lead);
    char32_t character = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    size_t taken = 1;
    while (taken < length && at + taken < utf8.size() &&
           (static_cast<unsigned char>(utf8[at + taken]) & 0xC0) == 0x80) {
      character = character << 6 | (static_cast<unsigned char>(utf8[at + taken]) & 0x3Fu);
      ++taken;
    }
    const bool overlong =
        (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    const bool surrogate = character >= 0xD800 && character < 0xE000;
    const bool valid = taken == length && (length > 1 || lead < 0x80) && !overlong && !surrogate &&
                       character < 0x110000;
    characters += valid ? character : kReplacement;
    at += taken;
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
