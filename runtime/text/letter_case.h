// Capital and small letters.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// The other case of a Latin, Greek, Cyrillic, Armenian or full-width letter. Other code points, and letters whose other
/// case has several letters, are returned unchanged.
uint32_t toUpper(uint32_t code_point);
uint32_t toLower(uint32_t code_point);

}  // namespace oriel_internal
