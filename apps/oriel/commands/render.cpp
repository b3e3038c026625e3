#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/messages.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

struct RenderOptions {
  CommonOptions common;
  std::string messages_file;
  ChatFormatOptions chat;
  bool no_generation_prompt = false;
};

int runRender(const RenderOptions& options) {
  const std::string messages = messagesText(readMessages(options.messages_file));
  const Model model(options.common, Load::kText);
  const bool prompt = !options.no_generation_prompt;
  const std::string format = model.chatFormat(options.chat);
  const std::string text = model.renderJson(options.chat, messages, prompt);
  if (options.common.json) {
    Json json;
    json["text"] = text;
    json["template"] = format;
    json["token_ids"] = model.renderedJsonIds(options.chat, messages, prompt, 0);
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
  addChatFormatOptions(app, &options->chat);
  addCommonOptions(app, &options->common, Uses::kText);
  return {app, [options] { return runRender(*options); }};
}

}  // namespace cli
