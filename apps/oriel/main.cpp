// oriel: the command line program. Stable interfaces for scripts: docs/cli.md.

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <oriel/oriel.h>
#include <CLI/CLI.hpp>

#include "command_line.h"
#include "measure/divergence.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace {

using namespace cli;

/// Prints on one line, with any names and paths in it.
void complain(const std::string& message) { tellText("oriel: " + oneLine(message) + "\n"); }

/// Options with an optional value: texts, not names.
bool mayBeEmpty(const CLI::Option* option) {
  return option->check_lname("prompt") || option->check_lname("system");
}

void refuseEmptyValues(CLI::App* program) {
  const std::function<bool(CLI::App*)> all;
  for (CLI::App* command : program->get_subcommands(all)) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_type_size() != 0 && !mayBeEmpty(option)) {
        option->check(notEmpty());
      }
    }
  }
}

/// Reports an unknown command or option, with a suggestion.
std::string describeUnknown(const CLI::App& program, const std::string& command) {
  const std::vector<std::string> unknown = program.remaining(/*recurse=*/true);
  const auto option = std::find_if(unknown.begin(), unknown.end(), [](const std::string& text) {
    return text.compare(0, 1, "-") == 0;
  });
  std::vector<std::string> known;
  std::string what;
  std::string typed;
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  const std::string first = unknown.empty() ? "" : unknown.front();
  if (chosen.empty() && (first == "version" || first == "help")) {
    return "oriel " + first + (first == "help" ? " takes one command" : " takes nothing") +
           ": see `oriel --help`";
  }
  if (chosen.empty() && !unknown.empty() && option != unknown.begin()) {
    typed = unknown.front();
    what = "no command " + typed;
    for (const CLI::App* app : program.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(app->get_name());
    }
    known.insert(known.end(), {"help", "version"});
  } else if (option != unknown.end()) {
    typed = option->substr(0, option->find('='));
    what = command + " has no option " + typed;
    const CLI::App* const app = chosen.empty() ? &program : chosen.front();
    for (const CLI::Option* each : app->get_options()) {
      for (const std::string& name : each->get_lnames()) {
        known.push_back("--" + name);
      }
    }
  } else {
    for (const std::string& text : unknown) {
      what += what.empty() ? command + " does not take " : ", ";
      what += text;
    }
    if (command == "oriel run") {
      return what + ": put the prompt in quotes, oriel run \"Tell me a joke\"";
    }
    return what + ": see `" + command + " --help`";
  }
  const std::string meant = optionMeant(typed);
  const std::string near = meant.empty() ? nearest(typed, known) : meant;
  const std::string help = "see `" + command + " --help`";
  return what + ": " + (near.empty() ? help : "did you mean " + near + "? (" + help + ")");
}

/// Help and version go to stdout, wrong usage to stderr.
int endParsing(const CLI::App& program, const CLI::ParseError& error, bool from_config) {
  if (error.get_exit_code() == 0) {
    std::ostringstream out;
    program.exit(error, out, out);
    print(out.str());
    return kExitDone;
  }
  std::string command = "oriel";
  for (const CLI::App* app : program.get_subcommands()) {
    command += " " + app->get_name();
  }
  complain(dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr
               ? describeUnknown(program, command)
               : std::string(error.what()) + (from_config ? " (set in " + configPath() + ")"
                                                          : " (see `" + command + " --help`)"));
  return kExitUsage;
}

constexpr std::pair<const char*, Command (*)(CLI::App*)> kCommands[] = {
    {"chat", addChatCommand},
    {"run", addRunCommand},
    {"plan", addPlanCommand},
    {"bench", addBenchCommand},
    {"eval", addEvalCommand},
    {"calibrate", addCalibrateCommand},
    {"info", addInfoCommand},
    {"tokenize", addTokenizeCommand},
    {"render", addRenderCommand},
    {"parse", addParseCommand},
    {"embed", addEmbedCommand},
    {"rerank", addRerankCommand},
    {"serve", addServeCommand},
    {"models", addModelsCommand},
    {"pull", addPullCommand},
    {"devices", addDevicesCommand},
    {"doctor", addDoctorCommand},
    {"options", addOptionsCommand},
    {"completions", addCompletionsCommand},
    {"manual", addManualCommand},
    {"rm", addRemoveCommand},
};

/// The name of the command to build alone, because each takes a millisecond. Empty: all, since the line may name others, the
/// config file may have options of others, or the command describes all.
std::string onlyCommand(const std::vector<std::string>& given) {
  const std::string first = given.empty() ? "" : given.front();
  const bool is_name = std::any_of(std::begin(kCommands), std::end(kCommands),
                                   [&](const auto& row) { return first == row.first; });
  std::error_code error;
  const bool describes_all = first == "completions" || first == "manual";
  return is_name && !describes_all &&
                 !std::filesystem::exists(std::filesystem::u8path(configPath()), error)
             ? first
             : "";
}

int runCommand(int argc, char** argv) {
  CLI::App program("Chat with a language model inside a memory budget you choose.", "oriel");
  program.set_help_flag("--help", "Show all options and exit; -h: the common ones");
  program.set_version_flag("--version", std::string("oriel ") + oriel_version(),
                           "Show the version and exit");
  program.require_subcommand(0, 1);
  program.allow_windows_style_options(false);  // arguments with a slash are paths on Windows, too
  program.formatter(helpFormatter());
  const std::vector<std::string> given = arguments(argc, argv);
  const std::string only = onlyCommand(given);
  std::vector<Command> commands;
  for (const auto& [name, add] : kCommands) {
    if (only.empty() || only == name) {
      commands.push_back(add(&program));
    }
  }
  program.footer(  // set here, since commands inherit earlier settings
      "MODEL is a GGUF file, or the name of a model that `oriel pull NAME` downloaded. Without it "
      "Oriel uses its small bundled model.\n"
      "`oriel COMMAND -h` shows the common options, `--help` all. To begin: oriel chat");
  refuseEmptyValues(&program);
  bool brief = false;
  const std::vector<std::string> texts = asParsed(program, given, &brief);
  briefHelp(brief || texts.empty());
  const std::vector<std::string> whole = withConfig(program, texts);
  try {
    program.parse(std::vector<std::string>(whole.rbegin(), whole.rend()));  // CLI11's order
  } catch (const CLI::ParseError& error) {
    return endParsing(program, error, isFromConfig(whole, texts, error.what()));
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) {
      return command.run();
    }
  }
  tell(program.help());
  return kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  prepareStreams();
  try {
    return runCommand(argc, argv);
  } catch (const Failure& failure) {
    if (!failure.message.empty()) {
      complain(failure.message);
    }
    return failure.exit_code;
  } catch (const std::bad_alloc&) {
    tell("oriel: the system has no memory left: close other programs\n");
  } catch (const std::exception& error) {
    complain("unexpected error (" + std::string(error.what()) + "): please report it");
  }
  return kExitFailed;
}
