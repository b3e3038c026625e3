#include "text/wordpiece.h"

#include <algorithm>

#include "text/letter_case.h"
#include "text/normalise.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

constexpr CodePointRange kWordIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
                                              {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                                              {0x2A700, 0x2CEAF}, {0x2F800, 0x2FA1F}};

// White space in Unicode's class of controls.
bool isControlBlank(uint32_t code_point) {
  return code_point == 0x0B || code_point == 0x0C || code_point == 0x85;
}

bool isAccent(uint32_t code_point) {
  return charClass(code_point) == CharClass::kMark && isNonSpacing(code_point);
}

}  // namespace

bool WordPieces::isDropped(uint32_t code_point) {
  return code_point == kReplacementCharacter || charClass(code_point) == CharClass::kOther ||
         isControlBlank(code_point);
}

bool WordPieces::isBlank(uint32_t code_point) { return charClass(code_point) == CharClass::kSpace; }

bool WordPieces::isIdeograph(uint32_t code_point) {
  return isInRanges(code_point, kWordIdeographs, 6);
}

bool WordPieces::isPunctuation(uint32_t code_point) {
  const CharClass of = charClass(code_point);
  return of == CharClass::kPunctuation || (code_point < 0x7F && of == CharClass::kSymbol);
}

uint32_t WordPieces::partsOf(uint32_t code_point, uint32_t (&parts)[kMostDecomposed]) const {
  uint32_t count = 1;
  parts[0] = code_point;
  if (isBlank(code_point)) {
    return 0;
  }
  if (t_.strips_accents_) {
    count = decomposed(code_point, parts);
    count = static_cast<uint32_t>(std::remove_if(parts, parts + count, isAccent) - parts);
  }
  if (t_.lowers_) {
    std::transform(parts, parts + count, parts, toLower);
  }
  return count;
}

void WordPieces::append(uint32_t code_point) {
  if (n_chars_ == 0) {
    word_[0] = ' ';
    n_bytes_ = 1;
  }
  if (n_chars_ < kMostChars) {
    n_bytes_ += static_cast<uint32_t>(encodeUtf8(code_point, word_ + n_bytes_));
  }
  ++n_chars_;
}

uint32_t WordPieces::split(int32_t (&ids)[kMostChars]) {
  uint32_t count = 0;
  if (n_chars_ != 0 && n_chars_ <= kMostChars) {
    for (uint32_t at = 0; at < n_bytes_;) {
      // The longest token that begins here.
      KeyHash hash = Tokenizer::keyHash(false);
      uint32_t end = at;
      for (uint32_t i = at; i < n_bytes_ && i - at < t_.longest_ordinary_; ++i) {
        hash.add(word_[i]);
        const bool space = i == 0;  // no piece of a word is a space alone
        const int32_t id = space ? -1 : t_.lookUp(hash.end(), false, word_ + at, i + 1 - at);
        if (id >= 0) {
          ids[count] = id;
          end = i + 1;
        }
      }
      if (end == at) {
        count = 0;
        break;
      }
      at = end;
      ++count;
    }
  }
  if (n_chars_ != 0 && count == 0 && t_.unknown_id_ >= 0) {
    ids[count++] = t_.unknown_id_;
  }
  n_chars_ = 0;
  return count;
}

}  // namespace oriel_internal
