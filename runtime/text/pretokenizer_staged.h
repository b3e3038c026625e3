// Matchers for pre-tokenizers of several expressions, one after the other: each cuts what the ones before
// left, and what it does not match between two matches stays together as a word of its own.
//
// Each of these finds the end of the word that begins at `begin`, from the text behind it alone.
#pragma once

#include "text/pretokenizer_reader.h"

namespace oriel_internal {

/// [\r\n]; \s?\p{L}+; \s?\p{P}+; asian letters and signs together; \p{N}
size_t deepSeekCoderWordEnd(const Reader& reader, size_t begin);
/// [\r\n]; \s?L+; \s?P+; \s+$; asian letters and signs together; \p{N}. L and P are lists of ranges.
size_t deepSeekLlmWordEnd(const Reader& reader, size_t begin);
/// \p{N}{1,3}; Chinese and Japanese letters together; an expression of its own.
size_t deepSeek3WordEnd(const Reader& reader, size_t begin);
/// Runs of punctuation; gpt-2's expression without what punctuation takes; \p{N}+; [0-9][0-9][0-9]
size_t falconWordEnd(const Reader& reader, size_t begin);
/// ` ?[^(\s|.,!?...)]+`; with `cuts_numbers`, \p{N} then cuts what that left.
size_t bloomWordEnd(const Reader& reader, size_t begin, bool cuts_numbers);

/// Digits, or white space, that follow a place, as they were counted for the word before it. Every word of a long
/// run asks for them.
struct DigitCount {
  size_t at = SIZE_MAX;  ///< the place
  size_t digits = 0;     ///< from there on
  size_t behind = 0;     ///< where they end
};
/// \s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s where white space begins.
size_t jaisSpaceEnd(const Reader& reader, size_t begin, DigitCount* count);
/// \p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})); letters of East Asia together; the last of deepseek-v3's expressions.
size_t afmoeWordEnd(const Reader& reader, size_t begin, DigitCount* count);
/// As deepseek-v3's, with numbers and line ends one by one.
size_t sparkWordEnd(const Reader& reader, size_t begin);
/// \d{1,3}(?=(?:\d{3})*\b) where digits begin; `begin` where that does not match.
size_t boundDigitsEnd(const Reader& reader, size_t begin, DigitCount* count);
/// \p{N}+; (?=(\d{3})+(?!\d)). Numbers are cut in threes from their end; all between numbers is one word.
size_t superBpeWordEnd(const Reader& reader, size_t begin, DigitCount* count);

}  // namespace oriel_internal
