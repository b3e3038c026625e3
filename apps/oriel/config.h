// The user's config file: defaults for the command line.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// The file named by ORIEL_CONFIG, or config.json in the user's config folder. Empty: none.
std::string configPath();

/// Appends the options of the config file and of the presets in --preset to a command line from asParsed(). Skips options
/// that the command line sets or excludes. --no-config: reads nothing. Throws Failure for an invalid file or an unknown
/// preset.
std::vector<std::string> withConfig(const CLI::App& program, std::vector<std::string> texts);

/// True if the option named in the error line came from the file.
bool isFromConfig(const std::vector<std::string>& texts, const std::vector<std::string>& given,
                  const std::string& error);

}  // namespace cli
