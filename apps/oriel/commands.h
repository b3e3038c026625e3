// The commands. Each adds itself to the program and says how it is run once everything is parsed.
#pragma once

#include <functional>

#include "described.h"

namespace CLI {
class App;
}

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
/// What oriel_device_describe() says of this machine's devices.
Json listDevices(const CommonOptions& common);

}  // namespace cli
