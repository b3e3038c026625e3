// The version in oriel.h, as text.
#pragma once

#include "oriel/advanced.h"

#define ORIEL_TEXT_OF_(value) #value
#define ORIEL_TEXT_OF(value) ORIEL_TEXT_OF_(value)

namespace oriel_internal {

/// "0.1.0"
constexpr char kVersionText[] = ORIEL_TEXT_OF(ORIEL_VERSION_MAJOR) "." ORIEL_TEXT_OF(
    ORIEL_VERSION_MINOR) "." ORIEL_TEXT_OF(ORIEL_VERSION_PATCH);

}  // namespace oriel_internal

#undef ORIEL_TEXT_OF
#undef ORIEL_TEXT_OF_
