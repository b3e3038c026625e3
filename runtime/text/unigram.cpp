#include "text/unigram.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "text/utf8.h"

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
      const size_t room = std::min<uint64_t>(t_.map_bytes_ - begin - value, kMostMapped);
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

}  // namespace oriel_internal
