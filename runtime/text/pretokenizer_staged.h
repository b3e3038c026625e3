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

/// Decimal digits that follow a place, as they were counted for the word before it. Every word of a long
/// number asks for them.
struct DigitCount {
  size_t at = SIZE_MAX;  ///< the place
  size_t digits = 0;     ///< from there on
  size_t behind = 0;     ///< where they end
};
/// \p{N}+; (?=(\d{3})+(?!\d)). Numbers are cut in threes from their end; all between numbers is one word.
size_t superBpeWordEnd(const Reader& reader, size_t begin, DigitCount* count);

}  // namespace oriel_internal
