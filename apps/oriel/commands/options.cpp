#include <filesystem>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "command_line.h"
#include "options.h"
#include "output.h"
#include "setting_flags.h"
#include "shell.h"
#include "terminal/reply_view.h"

namespace cli {
namespace {

int listOptions(const CommonOptions& options) {
  if (options.json) {
    Json json;
    json["options"] = optionTable();
    printJson(json);
    return kExitDone;
  }
  std::string scope;
  std::string text;
  for (const Json& row : optionTable()) {
    if (row["scope"] != scope) {
      text += (scope.empty() ? "Of a " : "\nOf a ") + row["scope"].get<std::string>() + ":\n";
      scope = row["scope"];
    }
    text += "  " + row["name"].get<std::string>() + " (" + row["type"].get<std::string>() +
            "; default: " + row["default"].get<std::string>() + ")\n      " +
            row["help"].get<std::string>() + "\n";
  }
  printText(text);
  return kExitDone;
}

}  // namespace

Command addOptionsCommand(CLI::App* program) {
  auto options = std::make_shared<CommonOptions>();
  CLI::App* app = program->add_subcommand("options", "List the library's options by name");
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return listOptions(*options); }};
}

// `oriel completions SHELL` and `oriel manual`: used by packages, which install the output. Not listed in --help.

namespace {

/// The options of the whole program, including commands that were added after this one.
OptionTable tableOf(const CLI::App* command) { return readOptionTable(*command->get_parent()); }

int printCompletions(const CLI::App* command, const std::string& shell) {
  const OptionTable table = tableOf(command);
  if (shell == "bash") {
    print(bashCompletions(table));
  } else if (shell == "zsh") {
    print(zshCompletions(table));
  } else if (shell == "fish") {
    print(fishCompletions(table));
  } else {
    throw Failure{kExitUsage,
                  (shell.empty() ? "no shell was named" : "no completions for " + shell) +
                      std::string(": name bash, zsh or fish")};
  }
  return kExitDone;
}

int printManual(const CLI::App* command, const std::string& page) {
  const OptionTable table = tableOf(command);
  if (page.empty()) {
    print(manualPage(table));
    return kExitDone;
  }
  for (const CommandRow& row : table.commands) {
    if (row.name == page) {
      print(manualPage(table, row));
      return kExitDone;
    }
  }
  throw Failure{kExitUsage,
                "there is no command " + page + ": leave it out for the page of the program"};
}

void writePage(const std::filesystem::path& folder, const std::string& name,
               const std::string& text) {
  writeResultFile((folder / (name + ".1")).u8string(), text);
}

int writeManual(const CLI::App* command, const std::string& folder_name) {
  const OptionTable table = tableOf(command);
  const std::filesystem::path folder = std::filesystem::u8path(folder_name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  writePage(folder, "oriel", manualPage(table));
  for (const CommandRow& row : table.commands) {
    writePage(folder, "oriel-" + row.name, manualPage(table, row));
  }
  return kExitDone;
}

}  // namespace

Command addCompletionsCommand(CLI::App* program) {
  auto shell = std::make_shared<std::string>();
  CLI::App* app =
      program->add_subcommand("completions", "Write the script with which a shell completes oriel");
  app->group("");
  app->add_option("SHELL", *shell, "bash, zsh or fish")->type_name("");
  return {app, [shell, app] { return printCompletions(app, *shell); }};
}

Command addManualCommand(CLI::App* program) {
  struct Options {
    std::string page;
    std::string folder;
  };
  auto options = std::make_shared<Options>();
  CLI::App* app = program->add_subcommand("manual", "Write a manual page, for man");
  app->group("");
  CLI::Option* const page =
      app->add_option("COMMAND", options->page, "Command to describe (default: the program)")
          ->type_name("");
  app->add_option("--folder", options->folder, "Write all pages into this folder")
      ->type_name("FOLDER")
      ->excludes(page);
  return {app, [options, app] {
            return options->folder.empty() ? printManual(app, options->page)
                                           : writeManual(app, options->folder);
          }};
}

}  // namespace cli
