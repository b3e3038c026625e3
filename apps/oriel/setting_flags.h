// Flags of the program from the library's table of options.
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

/// Values that are words, as the program takes them.
Json wordsOf(const Json& row);

/// "0 to 100", "auto, f16 or k8v4".
std::string allowedValues(const Json& row);

/// Those of the row's scope.
Settings& settingsOf(const Json& row, CommonOptions* options);

/// "", with the value as the library takes it, or why the row does not allow it.
std::string checkValue(const Json& row, std::string* value);

/// The row's flag; `options` must outlive the parsing.
CLI::Option* addFlagOf(CLI::App* command, const std::string& name, CommonOptions* options,
                       const char* group);

/// An error line of the library, with options as flags: --kv, where the library has "kv".
std::string withFlags(const std::string& line);

}  // namespace cli
