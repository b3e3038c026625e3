// Normalisation Form C (Unicode Standard Annex 15) of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Largest growth of a text in NFC, as a factor of its bytes.
constexpr size_t kMostNfcGrowth = 3;

/// The first character that NFC may change, alone or with its neighbours; `bytes`: none.
size_t firstChangedByNfc(const char* text, size_t bytes);
/// Characters in the canonical decomposition; invalid bytes count as one each.
size_t decomposedChars(const char* text, size_t bytes);
/// Writes the NFC of a text and returns its size. `chars` has room for decomposedChars(), `out` for kMostNfcGrowth *
/// bytes. Invalid bytes are kept. Time is n log n in the longest run of combining marks.
size_t toNfc(const char* text, size_t bytes, uint64_t* chars, char* out);

/// The canonical decomposition of one character; how many characters that is.
constexpr uint32_t kMostDecomposed = 9;
uint32_t decomposed(uint32_t code_point, uint32_t (&out)[kMostDecomposed]);

}  // namespace oriel_internal
