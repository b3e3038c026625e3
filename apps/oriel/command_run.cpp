#include <algorithm>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "divergence.h"
#include "failure.h"
#include "forgetting.h"
#include "interrupt.h"
#include "json_input.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply.h"
#include "validators.h"

namespace cli {
namespace {

struct RunOptions {
  CommonOptions common;
  ChatFormatOptions chat;
  std::string prompt;
  std::string prompt_file;
  std::string tokens_file;
  uint32_t tokens = 256;
  bool raw = false;
  bool ignore_stop = false;
};

constexpr uint32_t kRawFlags = ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS;

/// A prompt as text, or as ids when `from_ids`.
struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  bool from_ids = false;
};

/// Before the answer, what of the prompt it will not be an answer to.
void tellWhatIsLost(const RunOptions& options, const Model& model, const Session& session,
                    const Prompt& prompt) {
  const oriel_stats stats = session.stats();
  const uint64_t tokens = prompt.ids.size();
  const uint64_t beyond = tokens - std::min<uint64_t>(tokens, stats.window_capacity);
  const uint64_t lost = std::max(stats.evicted, beyond);
  if (lost != 0) {
    const uint64_t sinks = model.plan().sink_tokens;
    tellLoss("the prompt", lost, tokens, tokens - std::min(tokens, sinks) + options.tokens,
             options.common, model.plan());
  }
}

int runRun(const RunOptions& options, Prompt prompt) {
  const Model model(options.common, Load::kDevice);
  const bool wants_chat = !options.raw && !prompt.from_ids;
  const bool chat = wants_chat && model.chatFormat(options.chat) != "none";
  if (wants_chat && !chat) {
    model.diagnostics().warn(
        "the model has no chat format: the prompt is continued as it is; name one with --template, "
        "or give --raw");
  }
  const Session session(model, options.chat, 0, options.common.split_turns, options.common.forget);
  const CancelOnInterrupt cancel(session.get());
  oriel_generate_options sampling = generateOptions(options.common, options.tokens);
  sampling.ignore_stop = options.ignore_stop ? 1 : 0;
  Reply reply;
  reply.streams = !options.common.json;
  if (chat) {
    prompt.ids = model.renderedIds(options.chat, {{"user", prompt.text}}, true, ORIEL_TEXT_BOS);
    session.check(oriel_chat_add(session.get(), "user", prompt.text.data(), prompt.text.size()));
    tellWhatIsLost(options, model, session, prompt);
    chatReply(session, sampling, &reply);
  } else {
    if (prompt.from_ids) {
      checkIds(prompt.ids, model.info().n_vocab, inputName(options.tokens_file));
      session.check(oriel_session_append(session.get(), prompt.ids.data(), prompt.ids.size()));
    } else {
      prompt.ids = model.tokenize(prompt.text, kRawFlags);
      session.check(oriel_session_append_text(session.get(), prompt.text.data(), prompt.text.size(),
                                              kRawFlags));
    }
    tellWhatIsLost(options, model, session, prompt);
    generate(session, sampling, &reply);
  }
  if (options.common.json) {
    Json json = replyFields(reply, session.stats());
    json["token_ids"] = reply.ids;
    json["prompt_token_ids"] = prompt.ids;
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
  app->footer("Example:\n  oriel run --prompt \"Tell me a story.\" --tokens 100");
  CLI::Option* prompt = app->add_option(
      "--prompt", options->prompt, "The prompt; this, --prompt-file or --tokens-file is needed");
  CLI::Option* file =
      app->add_option("--prompt-file", options->prompt_file, "A file with the prompt; - is stdin")
          ->type_name("FILE")
          ->excludes(prompt);
  CLI::Option* tokens_file =
      app->add_option(
             "--tokens-file", options->tokens_file,
             R"(A prompt as token ids, JSON {"ids": [...]}, continued as it is; - is stdin)")
          ->type_name("FILE")
          ->excludes(prompt)
          ->excludes(file);
  app->add_option("--tokens", options->tokens,
                  "Generate at most N tokens (default 256; 0: until it ends by itself)")
      ->type_name("N")
      ->transform(wholeNumber(0, UINT32_MAX));
  app->add_flag("--raw", options->raw, "Continue the text as it is, without the chat format");
  app->add_flag("--ignore-stop", options->ignore_stop,
                "Go on past stop tokens, until there are --tokens");
  addChatFormatOptions(app, &options->chat);
  addCommonOptions(app, &options->common, Uses::kSampling);
  return {app, [options, prompt, file, tokens_file] {
            if (prompt->empty() && file->empty() && tokens_file->empty()) {
              throw Failure{kExitUsage,
                            "there is no prompt: give --prompt, --prompt-file or --tokens-file"};
            }
            Prompt given;
            if (!tokens_file->empty()) {
              given.from_ids = true;
              given.ids =
                  idsFromJson(readJson(options->tokens_file), inputName(options->tokens_file));
            } else {
              given.text = file->empty() ? options->prompt : readAll(options->prompt_file);
            }
            return runRun(*options, std::move(given));
          }};
}

}  // namespace cli
