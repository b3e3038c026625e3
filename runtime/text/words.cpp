#include "text/normalise.h"

#include <algorithm>

#include "base/hash.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

// Case folding for scripts whose capitals are at a fixed distance from their lowercase letters (Latin, Greek, Cyrillic,
// Armenian). Elsewhere a word in another case is not found.
uint32_t folded(uint32_t c) {
  const bool ascii = c >= 'A' && c <= 'Z';
  const bool latin1 = c >= 0xC0 && c <= 0xDE && c != 0xD7;
  const bool greek = c >= 0x391 && c <= 0x3A9;
  const bool cyrillic = c >= 0x410 && c <= 0x42F;
  if (ascii || latin1 || greek || cyrillic) {
    return c + 0x20;
  }
  if (c >= 0x400 && c <= 0x40F) {
    return c + 0x50;
  }
  if (c >= 0x531 && c <= 0x556) {
    return c + 0x30;
  }
  // Adjacent pairs: the capital is even, except in two ranges.
  const bool odd_capitals = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
  const bool pairs =
      (c >= 0x100 && c <= 0x177 && c != 0x130 && c != 0x131 && c != 0x138 && c != 0x149) ||
      (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) || (c >= 0x4D0 && c <= 0x52F) ||
      (c >= 0x1E00 && c <= 0x1E95) || (c >= 0x1EA0 && c <= 0x1EFF);
  if (odd_capitals) {
    return c + (c & 1);
  }
  return pairs ? c | 1 : c;
}

uint32_t numberOf(const uint32_t* characters, uint32_t count) {
  const uint64_t hash = hashBytes(characters, count * sizeof(uint32_t));
  const uint32_t number = static_cast<uint32_t>(hash ^ hash >> 32);
  return number != WordReader::kNone ? number : 1;
}

}  // namespace

bool hasWord(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes;) {
    const Utf8Char next = decodeUtf8(text + i, bytes - i);
    const CharClass kind = charClass(next.code_point);
    if (!next.valid || isLetter(kind) || isNumber(kind)) {
      return true;
    }
    i += next.bytes;
  }
  return false;
}

uint32_t WordReader::take(uint32_t code_point) {
  const CharClass kind = charClass(code_point);
  if (kind == CharClass::kOtherLetter) {
    const uint32_t word = end();
    const uint32_t pair[] = {before_, code_point};
    const uint32_t number = before_ != 0 ? numberOf(pair, 2) : kNone;
    before_ = code_point;
    return word != kNone ? word : number;
  }
  if (kind == CharClass::kMark && before_ != 0) {
    return kNone;  // the previous letter
  }
  before_ = 0;
  const bool digit = isNumber(kind);
  if (!isLetter(kind) && !digit && (kind != CharClass::kMark || length_ == 0)) {
    return end();
  }
  digits_ = (digits_ || length_ == 0) && digit;
  last_ = folded(code_point);
  if (length_ < kStem) {
    stem_[length_] = last_;
  }
  length_ += length_ < UINT32_MAX ? 1 : 0;
  return kNone;
}

uint32_t WordReader::end() {
  const uint32_t length = length_;
  length_ = 0;
  if (length == 0 || (length == 1 && !digits_)) {
    return kNone;
  }
  const bool plural = length > 3 && length <= kStem && last_ == 's';
  return numberOf(stem_, std::min(length, kStem) - (plural ? 1 : 0));
}

}  // namespace oriel_internal
