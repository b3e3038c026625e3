// stdout (results). What people read besides results goes to stderr: terminal.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cli {

/// Fields stay in the order in which they were added.
using Json = nlohmann::ordered_json;

/// Writes to stdout at once, on a terminal as writeShown() does. Once the reader has gone away this ends the command quietly (throws
/// Failure with exit code 0 and no message); any other error is a failure.
void print(std::string_view text);
/// As print(), for callbacks of the library, through which nothing may be thrown: false instead,
/// and the next print() throws.
bool tryPrint(std::string_view text) noexcept;

/// As printf writes it, at most 511 bytes.
#if defined(__MINGW32__)
__attribute__((format(gnu_printf, 1, 2)))
#elif defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string
formatted(const char* pattern, ...);

/// On one line. Text that is not UTF-8 is repaired with U+FFFD.
std::string dumped(const Json& json);
/// One object on one line, repaired in the same way.
void printJson(const Json& json);

/// The parts of a text that commas separate.
Json listOf(const std::string& parts);

/// The shortest number that reads back as this float: as a double it would have up to 17 digits.
Json numberOf(float value);

/// `text` with `to` in place of each `from`.
std::string replaced(const std::string& text, const std::string& from, const std::string& to);

}  // namespace cli
