#include "text/normalise.h"

#include <algorithm>
#include <cstring>

#include "text/normal_tables.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kFirstChanged = 0x300;  ///< below it nothing is changed by NFC
constexpr uint32_t kBroken = 0x110000;     ///< and a byte: it is not UTF-8

// Hangul syllables are a leading consonant, a vowel and perhaps a trailing consonant, in order.
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

struct Step {
  uint32_t code = 0;
  uint32_t first = 0;
  uint32_t second = 0;
};

Step stepAt(uint32_t place) {
  if (place < kDecomposedCount) {
    return {kDecomposed[place], kDecomposedFirst[place], kSeconds[kDecomposedSecond[place]]};
  }
  const WideDecomposition& step = kWideDecompositions[place - kDecomposedCount];
  return {step.code, step.first, step.second};
}

/// The first place in [0, count) for which `before` is false.
template <typename Before>
uint32_t firstPlace(uint32_t count, const Before& before) {
  uint32_t low = 0;
  while (low < count) {
    const uint32_t middle = low + (count - low) / 2;
    if (before(middle)) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

/// False: it does not decompose. Not for Hangul.
bool decomposition(uint32_t code, Step* step) {
  uint32_t place = 0;
  for (const CodePointRange& block : kIdeographBlocks) {
    if (code >= block.first && code <= block.last) {
      place += code - block.first;
      const uint32_t plane = (kIdeographsOfPlane2[place / 8] >> place % 8 & 1) != 0 ? 2 : 0;
      *step = {code, plane << 16 | kIdeographs[place], 0};
      return step->first != 0;
    }
    place += block.last + 1 - block.first;
  }
  const bool is_narrow = code < 0x10000;
  const uint32_t from = is_narrow ? 0 : kDecomposedCount;
  const uint32_t count = is_narrow ? kDecomposedCount : kWideDecompositionCount;
  const uint32_t found =
      firstPlace(count, [&](uint32_t at) { return stepAt(from + at).code < code; });
  *step = found < count ? stepAt(from + found) : Step();
  return step->code == code && code != 0;
}

uint32_t combiningClass(uint32_t code) {
  const uint32_t behind = firstPlace(
      kCombiningRangeCount, [&](uint32_t range) { return kCombining[range] >> 8 <= code; });
  if (behind == 0) {
    return 0;
  }
  const uint32_t range = kCombining[behind - 1];
  return code - (range >> 8) < kCombiningCounts[behind - 1] ? range & 0xFF : 0;
}

/// The code point that two compose to; 0: none.
uint32_t composed(uint32_t first, uint32_t second) {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTrailCount;
  }
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTrailCount == 0 &&
      second - kTrails - 1 < kTrailCount - 1) {
    return first + second - kTrails;
  }
  for (uint32_t at = 0; at < kWideCompositionCount; ++at) {
    const WideDecomposition& step = kWideDecompositions[at];
    if (step.first == first && step.second == second) {
      return step.code;
    }
  }
  const uint32_t number =
      firstPlace(kComposingSecondCount, [&](uint32_t at) { return kSeconds[at] < second; });
  if (number == kComposingSecondCount || kSeconds[number] != second) {
    return 0;
  }
  const uint8_t* const end = kDecomposedSecond + kDecomposedCount;
  for (const uint8_t* at = kDecomposedSecond;
       (at = static_cast<const uint8_t*>(
            std::memchr(at, static_cast<int>(number), static_cast<size_t>(end - at)))) != nullptr;
       ++at) {
    if (kDecomposedFirst[at - kDecomposedSecond] == first) {
      return kDecomposed[at - kDecomposedSecond];
    }
  }
  return 0;
}

template <typename Visit>
void decompose(uint32_t code, const Visit& visit) {
  if (code - kSyllables < kSyllableCount) {
    const uint32_t at = code - kSyllables;
    visit(kLeads + at / (kVowelCount * kTrailCount));
    visit(kVowels + at / kTrailCount % kVowelCount);
    if (at % kTrailCount != 0) {
      visit(kTrails + at % kTrailCount);
    }
    return;
  }
  // The first part of a step may decompose again, the second one never does.
  uint32_t seconds[8];
  uint32_t n = 0;
  Step step;
  while (n < 8 && decomposition(code, &step)) {
    code = step.first;
    if (step.second != 0) {
      seconds[n++] = step.second;
    }
  }
  visit(code);
  while (n != 0) {
    visit(seconds[--n]);
  }
}

template <typename Visit>
void decomposeText(const char* text, size_t bytes, const Visit& visit) {
  for (size_t at = 0; at < bytes;) {
    const Utf8Char c = decodeUtf8(text + at, bytes - at);
    if (c.valid) {
      decompose(c.code_point, visit);
      at += c.bytes;
    } else {
      visit(kBroken + static_cast<uint8_t>(text[at++]));
    }
  }
}

// A character with what it is sorted by: its class, then its place.
constexpr uint32_t kCodeBits = 21;
constexpr uint32_t kClassShift = 56;
uint64_t packed(uint32_t code, uint32_t combining_class, size_t place) {
  return uint64_t{combining_class} << kClassShift |
         (uint64_t{place} & 0xFFFFFFFF) << (kCodeBits + 1) | code;
}
uint32_t codeOf(uint64_t one) { return static_cast<uint32_t>(one & ((1u << kCodeBits) - 1)); }
uint32_t classOf(uint64_t one) { return static_cast<uint32_t>(one >> kClassShift); }

bool isChanged(uint32_t code) {
  const bool never = (code >= 0x3400 && code < 0xA000) || code - kSyllables < kSyllableCount;
  return !never && (combiningClass(code) != 0 ||
                    isInRanges(code, kOthersChangedByNfc, kOthersChangedByNfcCount));
}

/// Marks behind a starter in the order of their classes.
void sortMarks(uint64_t* chars, size_t count) {
  for (size_t begin = 0; begin < count;) {
    size_t end = begin + 1;
    while (end < count && classOf(chars[end]) != 0) {
      ++end;
    }
    const size_t first = begin + (classOf(chars[begin]) == 0 ? 1 : 0);
    std::sort(chars + first, chars + end);
    begin = end;
  }
}

/// Composes in place; how many are left.
size_t compose(uint64_t* chars, size_t count) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone;
  size_t n = 0;
  uint32_t last = 0;  // the class of what stands between the starter and the next character
  for (size_t i = 0; i < count; ++i) {
    const uint64_t one = chars[i];
    const uint32_t own = classOf(one);
    const bool adjacent = starter != kNone && n == starter + 1;
    if (starter != kNone && (adjacent || (last < own && last != 0))) {
      const uint32_t both = composed(codeOf(chars[starter]), codeOf(one));
      if (both != 0) {
        chars[starter] = both;
        continue;
      }
    }
    if (own == 0) {
      starter = n;
    }
    last = own;
    chars[n++] = one;
  }
  return n;
}

}  // namespace

size_t firstChangedByNfc(const char* text, size_t bytes) {
  constexpr uint8_t kFirstLead = 0xCC;  // of kFirstChanged
  for (size_t at = 0; at < bytes;) {
    if (static_cast<uint8_t>(text[at]) < kFirstLead) {
      ++at;
      continue;
    }
    const Utf8Char c = decodeUtf8(text + at, bytes - at);
    if (c.valid && isChanged(c.code_point)) {
      return at;
    }
    at += c.bytes;
  }
  return bytes;
}

size_t decomposedChars(const char* text, size_t bytes) {
  size_t count = 0;
  decomposeText(text, bytes, [&](uint32_t) { ++count; });
  return count;
}

size_t toNfc(const char* text, size_t bytes, uint64_t* chars, char* out) {
  size_t count = 0;
  decomposeText(text, bytes, [&](uint32_t code) {
    chars[count] = packed(code, code < kFirstChanged ? 0 : combiningClass(code), count);
    ++count;
  });
  sortMarks(chars, count);
  count = compose(chars, count);
  size_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t code = codeOf(chars[i]);
    if (code >= kBroken) {
      out[n++] = static_cast<char>(code - kBroken);
    } else {
      n += encodeUtf8(code, out + n);
    }
  }
  return n;
}

uint32_t decomposed(uint32_t code_point, uint32_t (&out)[kMostDecomposed]) {
  uint32_t count = 0;
  decompose(code_point, [&](uint32_t part) { out[count++] = part; });
  return count;
}

}  // namespace oriel_internal
