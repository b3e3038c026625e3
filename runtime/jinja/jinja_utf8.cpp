#include "jinja/jinja_utf8.h"

#include <cstring>

namespace oriel_internal::jinja {
namespace {

size_t readDigits(const char* text, size_t bytes, uint32_t base, size_t most, uint32_t* value) {
  size_t n = 0;
  *value = 0;
  for (; n < most && n < bytes; ++n) {
    const char c = text[n];
    const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                  : 99;
    if (digit >= base) {
      break;
    }
    *value = *value * base + digit;
  }
  return n;
}

bool isCharacter(uint32_t code_point) {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point >= 0xE000);
}

}  // namespace

size_t readEscape(const char* text, size_t bytes, uint32_t* code_point) {
  static constexpr char kFrom[] = "nt\\'\"rabfv";
  static constexpr char kTo[] = "\n\t\\'\"\r\a\b\f\v";
  const char c = text[1];
  if (c == '\n') {
    *code_point = kLineJoined;
    return 2;
  }
  if (const char* const known = c != '\0' ? std::strchr(kFrom, c) : nullptr; known != nullptr) {
    *code_point = static_cast<uint8_t>(kTo[known - kFrom]);
    return 2;
  }
  if (c >= '0' && c <= '7') {
    return 1 + readDigits(text + 1, bytes - 1, 8, 3, code_point);
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    *code_point = kNoEscape;
    return 1;
  }
  const bool read = readDigits(text + 2, bytes - 2, 16, digits, code_point) == digits;
  return read && isCharacter(*code_point) ? 2 + digits : 0;
}

}  // namespace oriel_internal::jinja
