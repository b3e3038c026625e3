// The user's config file: options that stand for those that a command line does not give.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// The file that ORIEL_CONFIG names, else config.json in the user's config folder. Empty: there is none.
std::string configPath();

/// The texts of a command line as asParsed() has them, with the file's options behind the command, and with those of
/// its presets that --preset names. Options that are given, or that exclude one that is, stay as they are. --no-config:
/// nothing is read. Throws Failure for a file that is not sound, and for a preset that is not there.
std::vector<std::string> withConfig(const CLI::App& program, std::vector<std::string> texts);

/// Whether the file set the option that the error line names.
bool isFromConfig(const std::vector<std::string>& texts, const std::vector<std::string>& given,
                  const std::string& error);

}  // namespace cli
