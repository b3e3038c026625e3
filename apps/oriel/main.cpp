// oriel: the command line program. docs/cli.md says what scripts may rely on.

#include <algorithm>
#include <exception>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <oriel/oriel.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "help.h"
#include "measure/nearest.h"
#include "output.h"
#include "system.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"
#include "validators.h"

namespace {

using namespace cli;

/// On one line, whatever names and paths are in it.
void complain(const std::string& message) { tellText("oriel: " + oneLine(message) + "\n"); }

/// Options whose value may be empty: texts, not names.
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

/// `oriel help`, `oriel help COMMAND` and `oriel version`, as other programs have them.
void readWords(const CLI::App& program, std::vector<std::string>* texts) {
  const std::string first = texts->empty() ? "" : texts->front();
  if (first == "version" && texts->size() == 1) {
    texts->front() = "--version";
  } else if (first == "help" && texts->size() <= 2) {
    texts->erase(texts->begin());
    // Of a command that there is not this says so.
    const bool known = texts->empty() || !program
                                              .get_subcommands([texts](const CLI::App* app) {
                                                return app->get_name() == texts->front();
                                              })
                                              .empty();
    if (known) {
      texts->emplace_back("--help");
    }
  }
}

/// A command or an option that there is not, and the one that was meant.
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
    what = "there is no command " + typed;
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
    return what + ": see `" + command + " --help`";
  }
  const std::string near = nearest(typed, known);
  const std::string help = "see `" + command + " --help`";
  return what + ": " + (near.empty() ? help : "did you mean " + near + "? (" + help + ")");
}

/// Help and version go to stdout, wrong usage to stderr.
int endParsing(const CLI::App& program, const CLI::ParseError& error) {
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
               : std::string(error.what()) + " (see `" + command + " --help`)");
  return kExitUsage;
}

int runCommand(int argc, char** argv) {
  CLI::App program("Chat with a language model inside a memory budget you choose.", "oriel");
  program.set_help_flag("-h,--help", "Show this and exit");
  program.set_version_flag("--version", std::string("oriel ") + oriel_version(),
                           "Show the version and exit");
  program.require_subcommand(0, 1);
  program.allow_windows_style_options(false);  // what begins with a slash is a path there, too
  program.formatter(helpFormatter());
  const Command commands[] = {
      addChatCommand(&program),   addRunCommand(&program),      addPlanCommand(&program),
      addBenchCommand(&program),  addEvalCommand(&program),     addCalibrateCommand(&program),
      addInfoCommand(&program),   addTokenizeCommand(&program), addRenderCommand(&program),
      addParseCommand(&program),  addEmbedCommand(&program),    addServeCommand(&program),
      addModelsCommand(&program), addPullCommand(&program),     addDevicesCommand(&program),
      addDoctorCommand(&program), addOptionsCommand(&program),  addCompletionsCommand(&program),
      addManualCommand(&program),
  };
  program.footer(  // now: commands take over what is set before
      "MODEL is a GGUF file, or a name that `oriel models` lists once `oriel pull NAME` got it;\n"
      "by default a small one that comes with the program.\n"
      "`oriel COMMAND --help` says what a command takes. To begin: oriel chat");
  refuseEmptyValues(&program);
  std::vector<std::string> texts = arguments(argc, argv);
  readWords(program, &texts);
  std::reverse(texts.begin(), texts.end());  // CLI11 takes them from the back
  try {
    program.parse(std::move(texts));
  } catch (const CLI::ParseError& error) {
    return endParsing(program, error);
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
