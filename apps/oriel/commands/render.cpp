#include <memory>
#include <string>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/chat_options.h"
#include "reply/messages.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct RenderOptions {
  CommonOptions common;
  std::string messages_file;
  bool no_generation_prompt = false;
};

int runRender(const RenderOptions& options) {
  const Json messages = readMessages(options.messages_file);
  const Model model(options.common, Load::kText);
  const uint32_t flags = options.no_generation_prompt ? 0 : ORIEL_RENDER_PROMPT;
  const Settings& session = options.common.session;
  const std::string format = model.chatFormat(session);
  const std::string text = model.render(session, messages, flags);
  if (options.common.json) {
    Json json;
    json["text"] = text;
    json["template"] = format;
    json["token_ids"] = model.renderedIds(session, messages, flags);
    printJson(json);
  } else {
    print(isTerminal(Stream::kOut) ? terminalSafe(text) : text);
  }
  return kExitDone;
}

}  // namespace

Command addRenderCommand(CLI::App* program) {
  auto options = std::make_shared<RenderOptions>();
  CLI::App* app = program->add_subcommand("render", "Show the text that a conversation becomes");
  addModelOption(app, &options->common);
  app->footer(R"(Example:
  echo '[{"role": "user", "content": "Hello!"}]' | oriel render --messages -)");
  app->add_option("--messages", options->messages_file,
                  "The conversation (needed; - is stdin), as JSON "
                  R"([{"role": ..., "content": ...}, ...]; tool calls and such as the model's )"
                  "template knows them)")
      ->type_name("FILE")
      ->required();
  app->add_flag("--no-generation-prompt", options->no_generation_prompt,
                "Do not open the assistant's turn at the end");
  addChatFormatOptions(app, &options->common);
  addCommonOptions(app, &options->common, Uses::kText);
  return {app, [options] { return runRender(*options); }};
}

}  // namespace cli
