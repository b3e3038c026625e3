// UTF-8 as characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

/// Stands for what is no character.
constexpr char32_t kReplacement = 0xFFFD;

/// Bytes of a character that begins with `lead`; 1 also for what can begin none.
size_t characterBytes(unsigned char lead);

/// UTF-8 and back.
std::u32string charactersOf(std::string_view utf8);
std::string utf8Of(std::u32string_view characters);

}  // namespace cli
