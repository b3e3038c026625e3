// Tables of canonical decomposition and composition (Unicode Standard Annex 15).
#pragma once

#include <cstdint>

#include "text/unicode.h"

namespace oriel_internal {

/// One step of a decomposition: a code point is two others, or a single one, where the second is 0.
struct WideDecomposition {
  uint32_t code;
  uint32_t first;
  uint32_t second;
};

/// Steps within 16 bits, in order of kDecomposed; the second is kSeconds[kDecomposedSecond[i]].
extern const uint16_t kDecomposed[];
extern const uint16_t kDecomposedFirst[];
extern const uint8_t kDecomposedSecond[];
extern const uint16_t kSeconds[];
/// Steps that compose again have one of the first seconds, which are in order.
extern const uint32_t kComposingSecondCount;
extern const uint32_t kDecomposedCount;
/// The others, in order of their codes. The first ones compose again.
extern const WideDecomposition kWideDecompositions[];
extern const uint32_t kWideDecompositionCount;
extern const uint32_t kWideCompositionCount;
/// CJK compatibility ideographs, two blocks one behind the other: the low 16 bits of the one that each is another name
/// of, 0: none, and a bit for those in plane 2.
constexpr CodePointRange kIdeographBlocks[] = {{0xF900, 0xFAD9}, {0x2F800, 0x2FA1D}};
extern const uint16_t kIdeographs[];
extern const uint8_t kIdeographsOfPlane2[];
/// Ranges of code points in order, first << 8 | combining class, and how many each has. All others have class 0.
extern const uint32_t kCombining[];
extern const uint8_t kCombiningCounts[];
extern const uint32_t kCombiningRangeCount;
/// Of class 0, and NFC_Quick_Check is not Yes. A text without these and without combining classes is in NFC.
extern const CodePointRange kOthersChangedByNfc[];
extern const uint32_t kOthersChangedByNfcCount;

}  // namespace oriel_internal
