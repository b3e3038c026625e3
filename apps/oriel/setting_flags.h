// Makes the program's flags from the library's option table.
#pragma once

#include <string>

#include "output.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cli {

struct CommonOptions;
class Settings;

/// The rows of oriel_option_list().
const Json& optionTable();
const Json& optionRow(const std::string& name);

/// The row's word values in the program's spelling.
Json wordsOf(const Json& row);

/// "0 to 100", "auto, f16 or k8v4".
std::string allowedValues(const Json& row);

/// The settings for the row's scope.
Settings& settingsOf(const Json& row, CommonOptions* options);

/// "", with the value in the library's form, or the reason of a refusal.
std::string checkValue(const Json& row, std::string* value);

/// The row's flag; `options` must outlive the parsing.
CLI::Option* addFlagOf(CLI::App* command, const std::string& name, CommonOptions* options,
                       const char* group);

/// An error line of the library with flags instead of option names: --kv for "kv".
std::string withFlags(const std::string& line);

}  // namespace cli
