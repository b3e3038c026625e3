#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "failure.h"
#include "interrupt.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply.h"

namespace cli {
namespace {

struct RunOptions {
  CommonOptions common;
  std::string prompt;
  std::string prompt_file;
  uint32_t tokens = 256;
  bool raw = false;
};

constexpr uint32_t kRawFlags = ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS;

int runRun(const RunOptions& options, const std::string& prompt) {
  const Model model(options.common, Load::kDevice);
  const bool raw = options.raw || !model.hasChatTemplate();
  const std::vector<int32_t> prompt_ids =
      raw ? model.tokenize(prompt, kRawFlags) : model.renderedIds("", {{"user", prompt}}, true);
  const Session session(model);
  const CancelOnInterrupt cancel(session.get());
  const oriel_generate_options sampling = generateOptions(options.common, options.tokens);
  Reply reply;
  reply.streams = !options.common.json;
  if (raw) {
    session.check(
        oriel_session_append_text(session.get(), prompt.data(), prompt.size(), kRawFlags));
    generate(session, sampling, &reply);
  } else {
    session.check(oriel_chat_add(session.get(), "user", prompt.data(), prompt.size()));
    chatReply(session, sampling, &reply);
  }
  if (options.common.json) {
    Json json = replyFields(reply, session.stats());
    json["token_ids"] = reply.ids;
    json["prompt_token_ids"] = prompt_ids;
    printJson(json);
  } else {
    print("\n");
  }
  return reply.cancelled ? kExitCancelled : kExitDone;
}

}  // namespace

Command addRunCommand(CLI::App* program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* app = program->add_subcommand("run", "Answer or continue one prompt");
  addModelOption(app, &options->common);
  CLI::Option* prompt = app->add_option("--prompt", options->prompt, "The prompt");
  CLI::Option* file =
      app->add_option("--prompt-file", options->prompt_file, "A file with the prompt; -: stdin")
          ->type_name("FILE")
          ->excludes(prompt);
  app->add_option("--tokens", options->tokens,
                  "At most this many (default 256; 0: until it ends by itself)")
      ->type_name("N");
  app->add_flag("--raw", options->raw, "Continue the text as it is, without the chat format");
  addCommonOptions(app, &options->common, Uses::kSampling);
  return {app, [options, prompt, file] {
            if (prompt->empty() && file->empty()) {
              throw Failure{kExitUsage, "there is no prompt: give --prompt or --prompt-file"};
            }
            return runRun(*options,
                          file->empty() ? options->prompt : readAll(options->prompt_file));
          }};
}

}  // namespace cli
