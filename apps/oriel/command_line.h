// The command line: its help, its conversion to the form of the parser, defaults from the config file, and the commands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model_handle.h"

namespace CLI {

// Formats --help.

class FormatterBase;
}  // namespace CLI

namespace cli {

/// Two columns within 80: only formats the commands' descriptions; parsing and checks are elsewhere.
std::shared_ptr<CLI::FormatterBase> helpFormatter();

/// Switches help to one screen: the most used options.
void briefHelp(bool brief);

}  // namespace cli

namespace CLI {

// Converts the typed command line to the parser's form.

class App;
}  // namespace CLI

namespace cli {

/// Null: unknown command.
const CLI::App* commandOf(const CLI::App& program, const std::string& name);

/// Translates the conventions of other programs: alternative names of commands and options, -m FILE for MODEL, options
/// before the command, `help` and `version`. `*brief`: -h requests one screen of help.
std::vector<std::string> asParsed(const CLI::App& program, std::vector<std::string> texts,
                                  bool* brief);

/// The option to suggest for a name that cannot be translated: "--format" for "--schema". Empty: none.
std::string optionMeant(const std::string& typed);

// The user's config file: defaults for the command line.

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

namespace CLI {

// The commands. Each adds itself to the program and sets the function that runs after parsing.

class App;
}  // namespace CLI

namespace cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  ///< returns the exit code; may throw Failure
};

Command addChatCommand(CLI::App* program);
Command addRunCommand(CLI::App* program);
Command addPlanCommand(CLI::App* program);
Command addEvalCommand(CLI::App* program);
Command addCalibrateCommand(CLI::App* program);
Command addBenchCommand(CLI::App* program);
Command addTokenizeCommand(CLI::App* program);
Command addEmbedCommand(CLI::App* program);
Command addRerankCommand(CLI::App* program);
Command addRenderCommand(CLI::App* program);
Command addParseCommand(CLI::App* program);
Command addInfoCommand(CLI::App* program);
Command addServeCommand(CLI::App* program);
Command addModelsCommand(CLI::App* program);
Command addPullCommand(CLI::App* program);
Command addDevicesCommand(CLI::App* program);
Command addDoctorCommand(CLI::App* program);
Command addOptionsCommand(CLI::App* program);
Command addCompletionsCommand(CLI::App* program);
Command addManualCommand(CLI::App* program);
Command addRemoveCommand(CLI::App* program);

struct CommonOptions;
/// The output of oriel_device_describe() for this machine's devices.
Json listDevices(const CommonOptions& common);

}  // namespace cli
