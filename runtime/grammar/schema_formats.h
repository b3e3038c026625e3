// Formats of strings as patterns.
#pragma once

#include "json/json.h"

namespace oriel_internal {

/// Forms of a format: each has fewer and shorter texts than the one before, for strings that must be short.
constexpr uint32_t kFormatForms = 3;

/// A pattern for the whole text. Null: the format is unknown.
const char* formatPattern(const JsonText& format, uint32_t form = 0);
/// True if the pattern has all texts that the format allows. A narrower one says nothing about a constant.
bool isFormatExact(const JsonText& format);

}  // namespace oriel_internal
