#include "utf8.h"

namespace desktop::utf8 {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

size_t lengthOf(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead < 0xe0) {
    return 2;
  }
  if (lead >= 0xe0 && lead < 0xf0) {
    return 3;
  }
  return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

bool isTail(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

uint32_t decode(const std::string& text, size_t offset, size_t* next) {
  const auto lead = static_cast<unsigned char>(text[offset]);
  const size_t length = lengthOf(lead);
  *next = offset + 1;
  if (length == 0 || offset + length > text.size()) {
    return kReplacement;
  }
  uint32_t character = length == 1 ? lead : lead & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if (!isTail(text[offset + i])) {
      return kReplacement;
    }
    character = character << 6 | (static_cast<unsigned char>(text[offset + i]) & 0x3f);
  }
  *next = offset + length;
  return character;
}

std::string encode(uint32_t character) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) {
    return {static_cast<char>(character)};
  }
  if (character < 0x800) {
    return {static_cast<char>(0xc0 | character >> 6), tail(0)};
  }
  return {static_cast<char>(0xe0 | character >> 12), tail(6), tail(0)};
}

size_t next(const std::string& text, size_t offset) {
  size_t end = offset;
  if (offset < text.size()) {
    decode(text, offset, &end);
  }
  return end;
}

size_t previous(const std::string& text, size_t offset) {
  if (offset == 0) {
    return 0;
  }
  size_t begin = offset - 1;
  while (begin > 0 && offset - begin < 4 && isTail(text[begin])) {
    begin--;
  }
  // A stray tail is a character of its own.
  return next(text, begin) == offset ? begin : offset - 1;
}

size_t offsetOf(const std::string& text, size_t count) {
  size_t offset = 0;
  while (count-- > 0 && offset < text.size()) {
    offset = next(text, offset);
  }
  return offset;
}

}  // namespace desktop::utf8
