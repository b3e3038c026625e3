#include <memory>
#include <string>
#include <vector>

#include <oriel/advanced.h>
#include <CLI/CLI.hpp>

#include "chat/chat.h"
#include "chat/kept_conversation.h"
#include "commands.h"
#include "failure.h"
#include "model_handle.h"
#include "options.h"
#include "plan/plan_source.h"
#include "reply/chat_options.h"
#include "reply/file_sampling.h"
#include "reply/reply_options.h"
#include "setting_flags.h"
#include "validators.h"

namespace cli {

uint32_t pinnedTokens(ChatOptions* options) {
  CommonOptions& common = options->common;
  if (common.load.has("prefix_file")) {
    return 0;
  }
  const Model text_only(common, Load::kGlance);
  if (text_only.chatFormat(common.session) == "none") {
    const Model model(common, Load::kDevice);
    const Session session(model);
    session.check(oriel_session_append(session.get(), nullptr, 0, nullptr, nullptr));  // an encoder
    throw Failure{kExitFailed,
                  "the model has no chat format: choose one with --template, or use oriel run "
                  "--raw"};
  }
  Json before = Json::array();
  if (!options->system.empty()) {
    before.push_back({{"role", "system"}, {"content", options->system}});
  }
  const auto count =
      static_cast<uint32_t>(text_only.renderedIds(common.session, before, ORIEL_TEXT_BOS).size());
  if (options->system.empty() && !options->load.empty()) {
    const Json kept = inspectKept(options->load);
    return !kept.is_null() && !common.load.has("sinks") ? countIn(kept, "sink_tokens") : 0;
  }
  if (options->system.empty()) {
    const Json plan =
        count <= 1 ? Json()
                   : PlanSource::ofFile(modelPath(common)).tryPlan(memoryOptions(common, count));
    if (plan.is_null()) {
      return 0;
    }
    common.load.set("memory", numberIn(plan, "memory_bytes"));
    if (!plannedFits(plan)) {
      return 0;
    }
  }
  return count;
}

void shareSystem(ChatOptions* options, uint32_t pinned_tokens) {
  options->common.load.erase("prefix_tokens");
  if (options->common.load.number("sessions", 1) > 1 && !options->system.empty()) {
    options->common.load.set("prefix_tokens", pinned_tokens);
  }
}

namespace {

void continueSaved(ChatOptions* options) {
  const std::vector<SavedChat> chats = savedChats();
  const int64_t number = options->continue_number;
  if (number < 1 || static_cast<uint64_t>(number) > chats.size()) {
    throw Failure{kExitUsage, chats.empty()
                                  ? "no conversation has been saved yet: oriel chat begins one"
                                  : "no saved conversation " + std::to_string(number) +
                                        ": `oriel chat --list` lists them"};
  }
  options->continued = chats[static_cast<size_t>(number - 1)];
  if (options->common.model.empty()) {
    options->common.model = options->continued.model;
  }
  if (options->system.empty()) {
    options->system = options->continued.system;
  }
}

}  // namespace

Command addChatCommand(CLI::App* program) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* app = program->add_subcommand("chat", "Talk with a model, for as long as you like");
  addModelOption(app, &options->common);
  app->footer(
      "In a chat, /help lists its commands. Examples:\n"
      "  oriel chat\n"
      "  oriel chat smollm2-135m --system \"You answer briefly.\"\n"
      "  oriel chat --continue");
  CLI::Option* const system = app->add_option("--system", options->system,
                                              "System message; it always stays in the context");
  app->add_option("--load", options->load, "Go on with a conversation from /save")
      ->type_name("FILE")
      ->check(notEmpty());
  app->add_flag("--continue{1}", options->continue_number,
                "Go on with the conversation that was saved last; --continue=N: with number N of "
                "--list")
      ->excludes("--load");
  app->add_flag("--list", options->list, "List the saved conversations");
  app->add_flag("--no-save", options->no_save,
                "Do not save this conversation (never: set ORIEL_NO_SAVE=1)");
  app->add_flag("--history", options->keeps_history,
                "Keep the typed lines for later chats: Up and Ctrl-R recall them");
  CommonOptions* const common = &options->common;
  addTokensOption(app, common, kReplyTokens, "Longest reply in tokens (default 2048; 0: no limit)");
  addReplyOptions(app, common);
  addToolOptions(app, &options->allowed_tools);
  addChatFormatOptions(app, common);
  for (const char* const name : {"sessions", "session_windows", "transcript"}) {
    addFlagOf(app, name, common, "Sessions");
  }
  addFlagOf(app, "prefix_file", common, "Sessions")->excludes(system);
  addCommonOptions(app, common, Uses::kSampling);
  app->get_option("--json")->description("One JSON object on one line for each reply");
  return {app, [options, common] {
            if (options->list) {
              printText(savedChatList(savedChats()));
              return kExitDone;
            }
            if (options->continue_number != 0) {
              continueSaved(options.get());
            }
            const bool has_tools = common->session.has("tools");
            checkReplyOptions(*common, common->json, has_tools);
            checkToolOptions(options->allowed_tools, has_tools);
            if (constrains(common->reply)) {
              common->load.set("constraints", "true");
            }
            // An interactive chat uses today's date; reproducible scripts set --date.
            if (!common->session.has("date")) {
              common->session.set("date", today());
            }
            common->file_sampling = fileSampling(modelPath(*common));
            const uint32_t pinned_tokens = pinnedTokens(options.get());
            shareSystem(options.get(), pinned_tokens);
            return Chat(*options, pinned_tokens).run();
          }};
}

}  // namespace cli
