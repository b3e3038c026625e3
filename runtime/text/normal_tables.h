// Tables of canonical decomposition and composition (Unicode Standard Annex 15).
#pragma once

#include <cstdint>

#include "text/unicode.h"

namespace oriel_internal {

/// One step: a code point is two others, or a single one, where `second` is 0. In order of `code`.
struct NarrowDecomposition {
  uint16_t code;
  uint16_t first;
  uint16_t second;
};
struct WideDecomposition {
  uint32_t code;
  uint32_t first;
  uint32_t second;
};
struct CombiningRange {
  uint32_t first;
  uint16_t count;
  uint8_t combining_class;
};

extern const NarrowDecomposition kNarrowDecompositions[];
extern const uint32_t kNarrowDecompositionCount;
extern const WideDecomposition kWideDecompositions[];
extern const uint32_t kWideDecompositionCount;
/// Decompositions that compose again, by their first and second code point: numbers in the narrow list, or behind its
/// end in the wide one.
extern const uint16_t kCompositions[];
extern const uint32_t kCompositionCount;
/// In order; all others have class 0.
extern const CombiningRange kCombiningRanges[];
extern const uint32_t kCombiningRangeCount;
/// A text without these is in NFC: NFC_Quick_Check is not Yes, or the combining class is not 0.
extern const CodePointRange kChangedByNfc[];
extern const uint32_t kChangedByNfcCount;

}  // namespace oriel_internal
