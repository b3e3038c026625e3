// String formats as patterns.
#pragma once

#include "json/json.h"

namespace oriel_internal {

/// Forms of a format: each has fewer and shorter texts than the previous one, for short strings.
constexpr uint32_t kFormatForms = 3;

/// A pattern for the whole text. Null: unknown format.
const char* formatPattern(const JsonText& format, uint32_t form = 0);
/// True if the pattern accepts every text of the format. A narrower pattern cannot reject a constant.
bool isFormatExact(const JsonText& format);

}  // namespace oriel_internal
