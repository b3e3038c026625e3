// Characters shared by several reply formats.
#pragma once

namespace oriel_internal {

constexpr char kGemmaQuote[] = "<|\"|>";

inline bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool isDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace oriel_internal
