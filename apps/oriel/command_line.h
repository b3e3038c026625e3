// Converts the typed command line to the parser's form.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// Null: unknown command.
const CLI::App* commandOf(const CLI::App& program, const std::string& name);

/// Translates the conventions of other programs: alternative names of commands and options, -m FILE for MODEL, options
/// before the command, `help` and `version`. `*brief`: -h requests one screen of help.
std::vector<std::string> asParsed(const CLI::App& program, std::vector<std::string> texts,
                                  bool* brief);

/// The option to suggest for a name that cannot be translated: "--format" for "--schema". Empty: none.
std::string optionMeant(const std::string& typed);

}  // namespace cli
