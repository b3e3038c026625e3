// Normalisation Form C (Unicode Standard Annex 15) of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// NFC has at most so many times the bytes of a text.
constexpr size_t kMostNfcGrowth = 3;

/// Where the first character begins that NFC may change, alone or together with its neighbours; `bytes`: none.
size_t firstChangedByNfc(const char* text, size_t bytes);
/// Characters of the canonical decomposition; a byte that is not UTF-8 counts as one.
size_t decomposedChars(const char* text, size_t bytes);
/// Writes the NFC of a text and returns its bytes. `chars` has room for decomposedChars(), `out` for
/// kMostNfcGrowth * bytes. Bytes that are not UTF-8 stay. Time is n log n in the longest run of combining marks.
size_t toNfc(const char* text, size_t bytes, uint64_t* chars, char* out);

/// The canonical decomposition of one character; how many characters that is.
constexpr uint32_t kMostDecomposed = 9;
uint32_t decomposed(uint32_t code_point, uint32_t (&out)[kMostDecomposed]);

}  // namespace oriel_internal
