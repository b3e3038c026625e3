// Pre-tokenizers: views of a text, and matchers for words.
#pragma once

#include <cstddef>

#include "gguf/gguf.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace oriel_internal {

// The view of a text for pre-tokenizer matchers.

struct Char {
  uint32_t code_point = 0;
  uint32_t bytes = 0;  ///< 0: none
  CharClass kind = CharClass::kOther;

  bool exists() const { return bytes != 0; }
  bool is(char c) const { return code_point == static_cast<unsigned char>(c) && exists(); }
  bool between(uint32_t first, uint32_t last) const {
    return code_point >= first && code_point <= last && exists();
  }
  bool newline() const { return is('\r') || is('\n'); }
  bool letter() const { return exists() && isLetter(kind); }
  bool mark() const { return exists() && kind == CharClass::kMark; }
  bool letterOrMark() const { return letter() || mark(); }
  /// Letters, marks, joiners and non-joiners.
  bool letterMarkOrJoiner() const { return letterOrMark() || between(0x200C, 0x200D); }
  bool number() const { return exists() && isNumber(kind); }
  /// \d
  bool digit() const { return exists() && kind == CharClass::kDigit; }
  bool space() const { return exists() && kind == CharClass::kSpace; }
  bool punctuation() const { return exists() && kind == CharClass::kPunctuation; }
  bool punctuationOrSymbol() const {
    return punctuation() || (exists() && kind == CharClass::kSymbol);
  }
  /// \p{C}: controls, formats, private use, unassigned
  bool other() const { return exists() && kind == CharClass::kOther; }
  /// [^\s\p{L}\p{N}]
  bool rest() const { return exists() && !isLetter(kind) && !number() && !space(); }
  /// [^\s\p{L}\p{M}\p{N}]
  bool restWithoutMarks() const { return rest() && !mark(); }
  /// [^\r\n\p{L}\p{N}]
  bool leadsWord() const { return exists() && !isLetter(kind) && !number() && !newline(); }
  /// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  bool notLower() const { return letterOrMark() && kind != CharClass::kLower; }
  /// [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  bool notUpper() const {
    return letterOrMark() && kind != CharClass::kUpper && kind != CharClass::kTitle;
  }
  bool han() const { return exists() && isHan(code_point); }
  /// The same sets without \p{Han}.
  bool notLowerNorHan() const { return notLower() && !han(); }
  bool notUpperNorHan() const { return notUpper() && !han(); }
  bool asciiLetter() const { return between('A', 'Z') || between('a', 'z'); }
  bool asciiDigit() const { return between('0', '9'); }
  bool asciiPunctuation() const {
    return between('!', '/') || between(':', '@') || between('[', '`') || between('{', '~');
  }
};

class Reader {
 public:
  /// Numbers the parts into which earlier expressions split a text: for later expressions the text ends where the number
  /// changes.
  using Region = uint8_t (*)(const Char&);

  Reader(const char* text, size_t end, bool* reached_end)
      : text_(text), end_(end), reached_end_(reached_end) {}

  /// The same text limited to the region of the character at `begin`.
  Reader within(Region region, size_t begin) const {
    Reader part = *this;
    part.wanted_ = region(at(begin));
    part.region_ = region;
    return part;
  }

  Char at(size_t position) const {
    if (reached_end_ != nullptr && position + kMaxUtf8Bytes > end_) {
      *reached_end_ = true;
    }
    Char c;
    if (position >= end_) {
      return c;
    }
    const Utf8Char decoded = decodeUtf8(text_ + position, end_ - position);
    c.kind = decoded.valid ? charClass(decoded.code_point) : CharClass::kSymbol;
    c.code_point = decoded.code_point;
    c.bytes = decoded.valid ? decoded.bytes : 1;
    return region_ != nullptr && region_(c) != wanted_ ? Char() : c;
  }

  /// The end of the run of characters from `position` that satisfy `is`.
  template <typename Is>
  size_t skip(size_t position, const Is& is) const {
    for (Char c = at(position); is(c); c = at(position)) {
      position += c.bytes;
    }
    return position;
  }
  template <bool (Char::*is)() const>
  size_t skip(size_t position) const {
    return skip(position, [](const Char& c) { return (c.*is)(); });
  }

 private:
  const char* text_;
  size_t end_;
  bool* reached_end_;
  Region region_ = nullptr;
  uint8_t wanted_ = 0;
};

/// \s+(?!\S)|\s+ at white space `begin`: everything at the end of the text, otherwise all but the last character, which
/// belongs to the next word. With `lines`, \s*[\r\n]+ is tried first: up to the last line end.
inline size_t spaceEnd(const Reader& reader, size_t begin, bool lines) {
  size_t end = begin;
  size_t last = begin;
  size_t line_end = begin;
  for (Char c = reader.at(begin); c.space(); c = reader.at(end)) {
    last = end;
    end += c.bytes;
    line_end = c.newline() ? end : line_end;
  }
  if (lines && line_end > begin) {
    return line_end;
  }
  return reader.at(end).exists() && last > begin ? last : end;
}

/// \p{N}{1,limit} at a number `begin`.
inline size_t numberEnd(const Reader& reader, size_t begin, int limit) {
  size_t end = begin;
  for (Char c = reader.at(begin); c.number() && limit > 0; c = reader.at(end), --limit) {
    end += c.bytes;
  }
  return end;
}

// Matchers for pre-tokenizers with several expressions in sequence: each splits the parts left by the previous ones,
// and unmatched text between two matches becomes a word.
//
// Each function finds the end of the word that begins at `begin`, using only the text from there on.

/// [\r\n]; \s?\p{L}+; \s?\p{P}+; runs of Asian letters and symbols; \p{N}
size_t deepSeekCoderWordEnd(const Reader& reader, size_t begin);
/// [\r\n]; \s?L+; \s?P+; \s+$; runs of Asian letters and symbols; \p{N}. L and P are lists of ranges.
size_t deepSeekLlmWordEnd(const Reader& reader, size_t begin);
/// \p{N}{1,3}; runs of Chinese and Japanese letters; an expression of its own.
size_t deepSeek3WordEnd(const Reader& reader, size_t begin);
/// Runs of punctuation; gpt-2's expression without punctuation; \p{N}+; [0-9][0-9][0-9]
size_t falconWordEnd(const Reader& reader, size_t begin);
/// ` ?[^(\s|.,!?...)]+`; with `cuts_numbers`, \p{N} then splits the rest.
size_t bloomWordEnd(const Reader& reader, size_t begin, bool cuts_numbers);

/// Cached count of the digits, or white space, after a place. Every word of a long run needs it.
struct DigitCount {
  size_t at = SIZE_MAX;  ///< the place
  size_t digits = 0;     ///< from there on
  size_t behind = 0;     ///< their end
};
/// \s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s at white space.
size_t jaisSpaceEnd(const Reader& reader, size_t begin, DigitCount* count);
/// \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})); runs of East Asian letters; the last of deepseek-v3's expressions.
size_t afmoeWordEnd(const Reader& reader, size_t begin, DigitCount* count);
/// Like deepseek-v3's, with single numbers and line ends.
size_t sparkWordEnd(const Reader& reader, size_t begin);
/// \d{1,3}(?=(?:\d{3})*\b) at digits; `begin` without a match.
size_t boundDigitsEnd(const Reader& reader, size_t begin, DigitCount* count);
/// \p{N}+; (?=(\d{3})+(?!\d)). Numbers are split in threes from their end; text between numbers is one word.
size_t superBpeWordEnd(const Reader& reader, size_t begin, DigitCount* count);

// Splits text into words that BPE merges cannot cross. Hand-written matchers for the regular expressions of published
// models; each takes linear time.

/// The rules for a name in tokenizer.ggml.pre.
struct PreTokenizerRules {
  PreTokenizer pre = PreTokenizer::kNone;
  /// A word that is a token takes precedence over merges.
  bool whole_words = false;
  /// BOS is added unless the file says otherwise.
  bool add_bos = false;
  /// Words are split and merged in Normalisation Form C.
  bool nfc = false;
};

/// False for an unknown name.
bool preTokenizerByName(const GgufString& name, PreTokenizerRules* rules);
/// "smollm"; a NUL-terminated constant.
const char* preTokenizerName(PreTokenizer pre);

/// Splits one text. Its state only saves work; the words do not depend on it.
class WordCutter {
 public:
  /// `text` must outlive it; the last word ends at `end`.
  WordCutter(PreTokenizer pre, const char* text, size_t end) : pre_(pre), text_(text), end_(end) {}

  /// End of the word that begins at `begin`; begin < result <= end. Linear in the text if all words are requested in
  /// order. Text before `begin` is ignored. An invalid byte counts as one symbol, like U+FFFD.
  //
  /// *reached_end (may be null) becomes true if the answer depends on the text's end, so that more text could change it.
  size_t wordEnd(size_t begin, bool* reached_end = nullptr);

 private:
  PreTokenizer pre_;
  const char* text_;
  size_t end_;
  DigitCount count_;
};

}  // namespace oriel_internal
