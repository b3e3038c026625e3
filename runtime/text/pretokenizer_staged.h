// Matchers for pre-tokenizers with several expressions in sequence: each splits the parts left by the previous ones,
// and unmatched text between two matches becomes a word.
//
// Each function finds the end of the word that begins at `begin`, using only the text from there on.
#pragma once

#include "text/pretokenizer_reader.h"

namespace oriel_internal {

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

}  // namespace oriel_internal
