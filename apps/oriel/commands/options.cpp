#include <memory>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "options.h"
#include "output.h"
#include "setting_flags.h"
#include "terminal/wrap.h"

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

}  // namespace cli
