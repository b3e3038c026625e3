#include "text/wordpiece.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "text/normalise.h"
#include "text/unicode.h"

namespace oriel_internal {
namespace {

/// A character without a token scores this much less than the lowest score.
constexpr double kUnknownPenalty = 10;
/// Longest replacement in bytes. Known files have shorter ones.
constexpr size_t kMostMapped = 255;
constexpr char kBrokenByte[] = "\xEF\xBF\xBD";

uint32_t wordAt(const uint8_t* bytes, uint64_t word) {
  const uint8_t* const at = bytes + 4 * word;
  return uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 | uint32_t{at[3]} << 24;
}

}  // namespace

// The map is a double array, preceded by its size in bytes and followed by the replacements, each with a final 0. Bits of
// a node: 0 to 7 and 31 are its label, 8 is set if a key ends here, 9 to 30 are the place of its children.
Unigram::Mapped Unigram::mapOne(const char* text, size_t bytes) const {
  uint64_t value = UINT64_MAX;
  size_t taken = 0;
  const uint64_t n_nodes = t_.map_bytes_ >= 8 ? wordAt(t_.map_, 0) / 4 : 0;
  if (n_nodes != 0 && 4 + 4 * n_nodes <= t_.map_bytes_) {
    const uint8_t* const nodes = t_.map_ + 4;
    const auto children = [&](uint32_t node) { return (node >> 10) << ((node & 0x200) >> 6); };
    uint64_t at = children(wordAt(nodes, 0));
    for (size_t i = 0; i < bytes && text[i] != '\0'; ++i) {
      at ^= static_cast<uint8_t>(text[i]);
      const uint32_t node = at < n_nodes ? wordAt(nodes, at) : 0x80000000u;
      if ((node & 0x800000FFu) != static_cast<uint8_t>(text[i])) {
        break;
      }
      at ^= children(node);
      if ((node & 0x100) != 0) {
        value = at < n_nodes ? wordAt(nodes, at) & 0x7FFFFFFFu : UINT64_MAX;
        taken = i + 1;
      }
    }
    const uint64_t begin = 4 + 4 * n_nodes;
    if (taken != 0 && value < t_.map_bytes_ - begin) {
      const char* const to = reinterpret_cast<const char*>(t_.map_ + begin + value);
      const auto room =
          static_cast<size_t>(std::min<uint64_t>(t_.map_bytes_ - begin - value, kMostMapped));
      const void* const end = std::memchr(to, 0, room);
      return {to, end == nullptr ? room : static_cast<size_t>(static_cast<const char*>(end) - to),
              taken};
    }
  }
  const Utf8Char c = decodeUtf8(text, bytes);
  return c.valid ? Mapped{text, c.bytes, c.bytes} : Mapped{kBrokenByte, 3, 1};
}

bool Unigram::endsWord(const char* text, size_t at) const {
  size_t begin = at;
  while (begin != 0 && at - begin < kMaxUtf8Bytes) {
    --begin;
    if ((text[begin] & 0xC0) != 0x80) {
      break;
    }
  }
  const Mapped last = mapOne(text + begin, at - begin);
  return begin != at && begin + last.taken == at && last.bytes != 0 &&
         last.data[last.bytes - 1] != ' ';
}

size_t Unigram::normalBytes(const char* word, size_t bytes) const {
  size_t total = 2;
  for (size_t at = 0; at < bytes;) {
    const Mapped one = mapOne(word + at, bytes - at);
    // A word may begin at every character.
    total += 2 * one.bytes;
    at += one.taken;
  }
  return total;
}

size_t Unigram::normalise(const char* word, size_t bytes, char* out) {
  size_t n = 0;
  for (size_t at = 0; at < bytes;) {
    const Mapped one = mapOne(word + at, bytes - at);
    for (size_t i = 0; i < one.bytes; ++i) {
      if (one.data[i] == ' ') {
        after_space_ = true;
        if (!t_.merges_spaces_) {
          out[n++] = ' ';
        }
        continue;
      }
      if (after_space_ && (prefix_ || t_.merges_spaces_)) {
        out[n++] = ' ';
        prefix_ = false;
      }
      after_space_ = false;
      const bool marked = one.bytes - i >= 3 && std::memcmp(one.data + i, "\xE2\x96\x81", 3) == 0;
      out[n++] = marked ? ' ' : one.data[i];
      i += marked ? 2 : 0;
    }
    at += one.taken;
  }
  return n;
}

// Viterbi. On a tie the path that was found first stays.
void Unigram::findBest(const char* word, uint32_t bytes, Step* steps) const {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  steps[0] = {0, -1, 0};
  for (uint32_t i = 1; i <= bytes; ++i) {
    steps[i] = {kNone, t_.unknown_id_, 0};
  }
  for (uint32_t at = 0; at < bytes;) {
    const uint32_t one = decodeUtf8(word + at, bytes - at).bytes;
    bool single = false;
    KeyHash hash = Tokenizer::keyHash(false);
    const uint32_t end = std::min<uint32_t>(bytes - at, t_.longest_ordinary_) + at;
    const auto offer = [&](uint32_t to, double score, int32_t id) {
      if (steps[at].score + score > steps[to].score) {
        steps[to] = {steps[at].score + score, id, at};
      }
    };
    for (uint32_t to = at; to < end;) {
      hash.add(word[to++]);
      const int32_t id = t_.lookUp(hash.end(), false, word + at, to - at);
      if (id >= 0) {
        single = single || to - at == one;
        offer(to, double{bitsToFloat(t_.priorities_[id])}, id);
      }
    }
    if (!single) {
      offer(at + one, double{t_.least_score_} - kUnknownPenalty, t_.unknown_id_);
    }
    at += one;
  }
}

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
