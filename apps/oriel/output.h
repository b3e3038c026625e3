// stdout (results). Other messages go to stderr: terminal.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cli {

/// Fields keep their order of insertion.
using Json = nlohmann::ordered_json;

/// Writes to stdout at once, on a terminal like writeShown(). If the reader has closed the pipe, the command ends
/// quietly (throws Failure with exit code 0 and no message); any other error is a failure.
void print(std::string_view text);
/// Like print(), for callbacks of the library, which must not throw: returns false, and the next print() throws.
bool tryPrint(std::string_view text) noexcept;

/// Formats like printf, at most 511 bytes.
#if defined(__MINGW32__)
__attribute__((format(gnu_printf, 1, 2)))
#elif defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string
formatted(const char* pattern, ...);

/// On one line. Invalid UTF-8 becomes U+FFFD.
std::string dumped(const Json& json);
/// Prints one object on one line, repaired in the same way.
void printJson(const Json& json);

/// Splits a text at commas.
Json listOf(const std::string& parts);

/// The shortest number that reads back as this float: as a double it would have up to 17 digits.
Json numberOf(float value);

/// `text` with each `from` replaced by `to`.
std::string replaced(const std::string& text, const std::string& from, const std::string& to);

}  // namespace cli
