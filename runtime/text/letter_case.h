// Capital and small letters.
#pragma once

#include <cstdint>

namespace oriel_internal {

/// The other case of a letter, itself where there is none. Latin, Greek, Cyrillic, Armenian and full-width letters that
/// become one letter.
uint32_t toUpper(uint32_t code_point);
uint32_t toLower(uint32_t code_point);

}  // namespace oriel_internal
