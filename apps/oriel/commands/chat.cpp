#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "chat/chat.h"
#include "chat/kept_conversation.h"
#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "plan/plan_source.h"
#include "reply/reply_options.h"
#include "session_options.h"
#include "validators.h"

namespace cli {

uint32_t pinnedTokens(ChatOptions* options) {
  if (!options->common.prefix_file.empty()) {
    return 0;
  }
  const Model text_only(options->common, Load::kGlance);
  if (text_only.chatFormat(options->chat) == "none") {
    throw Failure{kExitFailed,
                  "the model has no chat format: name one with --template, or use oriel run --raw"};
  }
  std::vector<Message> before;
  if (!options->system.empty()) {
    before.push_back({"system", options->system});
  }
  const size_t count = text_only.renderedIds(options->chat, before, false, ORIEL_TEXT_BOS).size();
  if (options->system.empty() && !options->load.empty()) {
    const std::optional<oriel_snapshot_info> kept = inspectKept(options->load);
    return kept && !options->common.sink_tokens ? kept->sink_tokens : 0;
  }
  if (options->system.empty()) {
    oriel_options plan_options = planOptions(options->common);
    plan_options.pinned_tokens = static_cast<uint32_t>(count);
    plan_options.min_tokens_per_s = 0;  // a question of memory
    oriel_plan plan;
    if (count <= 1 ||
        !PlanSource::ofFile(modelPath(options->common)).tryPlan(plan_options, &plan)) {
      return 0;
    }
    options->common.memory_bytes = plan.memory_bytes;
    if (plan.fits == 0) {
      return 0;
    }
  }
  return static_cast<uint32_t>(count);
}

Command addChatCommand(CLI::App* program) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* app = program->add_subcommand("chat", "Talk with a model, for as long as you like");
  addModelOption(app, &options->common);
  app->footer(
      "In a chat, /help lists its commands. Example:\n"
      "  oriel chat model.gguf --memory 1GiB --system \"You answer briefly.\"");
  CLI::Option* const system =
      app->add_option("--system", options->system, "System message; it is never forgotten");
  app->add_option("--load", options->load, "Go on with a conversation that /save kept")
      ->type_name("FILE")
      ->check(notEmpty());
  app->add_option("--tokens", options->reply_tokens,
                  "Longest reply in tokens (default 2048; 0: until it ends by itself)")
      ->type_name("N")
      ->transform(wholeNumber(0, UINT32_MAX));
  addReplyOptions(app, &options->reply);
  addToolOptions(app, &options->allowed_tools);
  addChatFormatOptions(app, &options->chat);
  addSessionOptions(app, &options->common);
  addPrefixFileOption(app, &options->common)->excludes(system);
  addCommonOptions(app, &options->common, Uses::kSampling);
  app->get_option("--json")->description("One JSON object on one line for each reply");
  return {app, [options] {
            const bool has_tools = !options->chat.tools.empty();
            checkReplyOptions(options->reply, options->common.json, has_tools);
            checkToolOptions(options->allowed_tools, has_tools);
            options->common.constraints = options->reply.constrain();
            // Somebody is talking now; scripts that want the same every day say --date.
            options->chat.date = options->chat.date != 0 ? options->chat.date : today();
            const uint32_t pinned_tokens = pinnedTokens(options.get());
            // Several conversations hold their system message once.
            const bool shares = options->common.sessions > 1 && !options->system.empty();
            options->common.prefix_tokens = shares ? pinned_tokens : 0;
            return Chat(*options, pinned_tokens).run();
          }};
}

}  // namespace cli
