// Mutations of texts by words of their language, and inputs of several texts. Tests only.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace oriel_internal::fuzz {

/// "a<separator>b<separator>c": `count` parts; the last has the rest, missing ones are empty.
inline std::vector<std::string> partsOf(const std::string& text, const std::string& separator,
                                        size_t count) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (parts.size() + 1 < count) {
    const size_t next = text.find(separator, at);
    if (next == std::string::npos) {
      break;
    }
    parts.push_back(text.substr(at, next - at));
    at = next + separator.size();
  }
  parts.push_back(text.substr(at));
  parts.resize(count);
  return parts;
}

/// A hash of all bytes: makes choices without dedicated input bytes.
inline uint32_t hashOf(const uint8_t* data, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ data[i]) * 16777619u;
  }
  return hash ^ hash >> 15;
}

/// True if the bytes of `part` appear in `whole`, in order.
inline bool standsIn(const std::string& part, const std::string& whole) {
  size_t at = 0;
  for (const char c : part) {
    at = whole.find(c, at);
    if (at == std::string::npos) {
      return false;
    }
    ++at;
  }
  return true;
}

/// The words of JSON, for languages that are written in it, and `more`.
inline std::vector<std::string> jsonWordsAnd(std::vector<std::string> more) {
  static const char* const kWords[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\\",
                                       "true",
                                       "false",
                                       "null",
                                       "0",
                                       "1",
                                       "-1",
                                       "-0.0",
                                       "1.5",
                                       "1e5",
                                       "1e400",
                                       "18446744073709551615",
                                       "2147483648",
                                       "\n",
                                       " ",
                                       "\t",
                                       "\r",
                                       "\\n",
                                       "\\u00e9",
                                       "\\ud83d\\ude00",
                                       "\\ud83d",
                                       "\\u0000",
                                       "é",
                                       "🌍",
                                       "\xC3",
                                       "\x7F",
                                       "[[[[[[[[",
                                       "]]]]]]]]"};
  more.insert(more.end(), std::begin(kWords), std::end(kWords));
  return more;
}

/// Puts words in, takes stretches out, doubles and moves them, and changes numbers.
class WordMutator {
 public:
  explicit WordMutator(std::vector<std::string> words) : words_(std::move(words)) {}

  std::string mutate(std::string text, Chance* chance) const {
    for (uint64_t n = 1 + chance->below(4); n > 0; --n) {
      once(&text, chance);
    }
    return text;
  }
  /// For ORIEL_FUZZ_MUTATE: now and then bytes instead of words.
  size_t mutate(uint8_t* data, size_t size, size_t max_size, uint64_t seed) const {
    Chance chance(seed);
    return chance.once(8) ? mutateBytes(data, size, max_size, seed)
                          : put(mutate(text(data, size), &chance), data, max_size);
  }

 private:
  /// Mostly where a word may begin.
  static size_t placeIn(const std::string& text, Chance* chance) {
    const size_t at = chance->below(text.size() + 1);
    const size_t next =
        chance->once(3) ? std::string::npos : text.find_first_of(" ,.|(){}[]<>\"':\n", at);
    return next == std::string::npos ? at : next + chance->below(2);
  }
  void once(std::string* text, Chance* chance) const {
    const size_t at = placeIn(*text, chance);
    const size_t other = placeIn(*text, chance);
    const size_t length = chance->below(chance->once(8) ? text->size() + 1 : 24);
    const std::string& word = words_[chance->below(words_.size())];
    switch (chance->below(8)) {
      case 0:
        text->replace(at, std::min(length, text->size() - at), word);
        return;
      case 1:
        text->erase(at, length);
        return;
      case 2:
        text->insert(at, text->substr(other, length));
        return;
      case 3:
        if (at < text->size()) {
          (*text)[at] =
              static_cast<char>(chance->once(2) ? chance->below(256) : 0x20 + chance->below(95));
        }
        return;
      case 4:
        changeNumber(text, at, chance);
        return;
      default:
        text->insert(at, word);
    }
  }
  /// The next one becomes one at an edge.
  static void changeNumber(std::string* text, size_t at, Chance* chance) {
    static const char* const kNumbers[] = {"0",
                                           "-1",
                                           "1",
                                           "2",
                                           "63",
                                           "64",
                                           "255",
                                           "-0",
                                           "16",
                                           "2147483647",
                                           "4294967296",
                                           "9223372036854775807",
                                           "1e308",
                                           "-9223372036854775808",
                                           "65",
                                           "9",
                                           "0.1",
                                           "1e-320",
                                           "18446744073709551616"};
    const size_t begin = text->find_first_of("0123456789", at);
    if (begin != std::string::npos) {
      const size_t end = std::min(text->find_first_not_of("0123456789", begin), text->size());
      text->replace(begin, end - begin, kNumbers[chance->below(std::size(kNumbers))]);
    }
  }

  const std::vector<std::string> words_;
};

}  // namespace oriel_internal::fuzz
