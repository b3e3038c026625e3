#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "models/model_parts.h"
#include "models/model_store.h"
#include "options.h"
#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/line_reader.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct RemoveOptions : CommonOptions {
  std::string name;
  bool yes = false;
};

bool agrees(const std::string& question) {
  if (!isTerminal(Stream::kIn) || !isTerminal(Stream::kErr)) {
    throw Failure{kExitUsage, "stdin is not a terminal: add --yes to delete the file"};
  }
  tell(question + " [y/N] ");
  LineReader reader;
  std::string answer;
  return reader.next(&answer) == LineReader::Result::kLine &&
         (answer == "y" || answer == "Y" || answer == "yes");
}

int runRemove(const RemoveOptions& options) {
  const auto path = storedModel(options.name);
  if (!path) {
    throw Failure{kExitFailed, "no model " + options.name + " is stored in " +
                                   modelsFolder().u8string() +
                                   ": `oriel list` names those that are"};
  }
  const uint64_t bytes = bytesOfModel(*path);
  std::error_code error;
  const std::string what = oneLine(*path) + " (" + formatSize(bytes) + ")";
  if (!options.yes && !agrees("Delete " + what + "?")) {
    tell("Nothing was deleted\n");
    return kExitCancelled;
  }
  for (const std::string& file : allParts(*path)) {
    (void)std::filesystem::remove(std::filesystem::u8path(file), error);
    if (error) {
      throw Failure{kExitFailed, file + " cannot be deleted (" + error.message() +
                                     "): check the permissions of its folder"};
    }
  }
  if (options.json) {
    printJson({{"removed", *path}, {"file_bytes", bytes}});
  } else {
    print("Deleted " + what + "\n");
  }
  return kExitDone;
}

}  // namespace

Command addRemoveCommand(CLI::App* program) {
  auto options = std::make_shared<RemoveOptions>();
  CLI::App* app = program->add_subcommand("rm", "Delete a model that `oriel pull` downloaded");
  app->footer("Example:\n  oriel rm smollm2-135m");
  app->add_option("NAME", options->name, "As `oriel list` shows it")->type_name("")->required();
  app->add_flag("-y,--yes", options->yes, "Do not ask");
  addCommonOptions(app, options.get(), Uses::kText);
  return {app, [options] { return runRemove(*options); }};
}

}  // namespace cli
