// The command line as people type it, and as the parser takes it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// Null: there is no command of that name.
const CLI::App* commandOf(const CLI::App& program, const std::string& name);

/// What other programs call it, in this program's words: other names of commands and options, -m FILE for MODEL, options
/// in front of the command, `help` and `version`. `*brief`: -h asked for one screen of help.
std::vector<std::string> asParsed(const CLI::App& program, std::vector<std::string> texts,
                                  bool* brief);

/// The option that a name stands for which no rewriting can do: "--schema" for "--format". Empty: none is known.
std::string optionMeant(const std::string& typed);

}  // namespace cli
