#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "chat/cache_picture.h"
#include "chat/chat_input.h"
#include "chat/chat_line.h"
#include "chat/conversations.h"
#include "chat/kept_conversation.h"
#include "chat/lost_device.h"
#include "chat/tool_round.h"
#include "commands.h"
#include "failure.h"
#include "measure/forgetting.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "plan/chart.h"
#include "plan/plan_source.h"
#include "reply/reply.h"
#include "reply/reply_options.h"
#include "result_file.h"
#include "session_options.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"
#include "validators.h"

namespace cli {
namespace {

struct ChatOptions {
  CommonOptions common;
  ChatFormatOptions chat;
  ReplyOptions reply;
  std::vector<LocalTool> allowed_tools;
  std::string system;
  std::string load;  ///< a conversation to go on with; empty: none
  uint32_t reply_tokens = 2048;
};

/// Tokens before the first question, which stay in the cache for ever: the system message, or what the chat
/// format puts in its place if there is memory for it. 0: nothing that counts. Memory by default is settled with it:
/// what is free a moment later may be less.
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

/// A line of a pipe is never a command.
ChatLine messageOf(const std::string& line) {
  const bool empty = line.find_first_not_of(" \t\n") == std::string::npos;
  return {empty ? ChatLine::Kind::kEmpty : ChatLine::Kind::kMessage, line, {}, {}};
}

class Chat {
 public:
  Chat(const ChatOptions& options, uint32_t pinned_tokens)
      : options_(options),
        pinned_tokens_(pinned_tokens),
        model_(options.common, Load::kDevice, pinned_tokens_),
        conversations_({options.common, options.chat, options.system, pinned_tokens}, &model_),
        tools_(options.allowed_tools) {}

  /// Until the input ends; returns the exit code.
  int run() {
    const bool watched = interactive_ && (isTerminal(Stream::kErr) || options_.common.verbose);
    if (watched) {
      greet();
    }
    if (!options_.load.empty() && !onSomeDevice([&] { return load(watched); })) {
      return kExitCancelled;
    }
    bool leaving = false;  // Ctrl-C was the last thing that happened
    for (std::string line;;) {
      switch (input_.next(watched, &line)) {
        case ChatInput::Result::kEnd:
          return kExitDone;
        case ChatInput::Result::kDropped:
          leaving = false;
          continue;
        case ChatInput::Result::kInterrupted:
          if (!interactive_) {
            return kExitCancelled;
          }
          if (leaving) {
            return kExitDone;
          }
          if (watched) {
            tell(dim("Ctrl-C again or Ctrl-D leaves") + "\n");
          }
          leaving = true;
          continue;
        case ChatInput::Result::kText:
          break;
      }
      leaving = false;
      const ChatLine said = interactive_ ? parseChatLine(line) : messageOf(line);
      switch (said.kind) {
        case ChatLine::Kind::kEmpty:
          break;
        case ChatLine::Kind::kWrong:
          tell(said.text + "\n");
          input_.giveBack(line);
          break;
        case ChatLine::Kind::kCommand:
          if (!onSomeDevice([&] { return obey(said.command, said.argument); })) {
            return kExitDone;
          }
          break;
        case ChatLine::Kind::kMessage:
          if (!onSomeDevice([&] { return turn(said.text); })) {
            return kExitCancelled;
          }
          break;
      }
    }
  }

 private:
  Session& session() const { return conversations_.session(); }

  /// Does it; where the device is lost meanwhile once more, on the CPU, as if it had not begun.
  template <typename Act>
  bool onSomeDevice(const Act& act) {
    const uint64_t begin = session().stats().position;
    try {
      return act();
    } catch (const Failure&) {
      if (!deviceLost(session())) {
        throw;
      }
    }
    print(interactive_ ? "\n" : "");
    conversations_.goOnOnCpu(begin);
    return act();
  }

  /// Within the terminal's width.
  static void tell(std::string_view text) { tellText(text); }

  void greet() const {
    const oriel_plan& plan = model_.plan();
    const std::string name =
        model_.info().name[0] != '\0' ? model_.info().name : model_.info().architecture;
    tell(bold(terminalSafe(name)) + " on " + terminalSafe(model_.info().device) + "\n" +
         formatSize(plan.total_bytes) + " of " + formatSize(plan.memory_bytes) +
         " used; remembers the last " + std::to_string(plan.window_tokens) +
         " tokens, and forgets " +
         (options_.common.split_turns ? "the oldest token by token"
                                      : "whole turns, the oldest first") +
         (conversations_.capacity() > 1
              ? "; room for " + std::to_string(conversations_.capacity()) +
                    " conversations, /new begins another"
              : "") +
         "\n" + dim("/help lists the commands, Ctrl-D leaves") + "\n\n");
  }

  /// False: leave.
  bool obey(const std::string& command, const std::string& argument) {
    if (command == "/quit" || command == "/exit") {
      return false;
    }
    if (command == "/reset") {
      conversations_.reset();
      tell(dim("the conversation is forgotten") + "\n");
    } else if (command == "/stats") {
      showStats();
    } else if (command == "/undo") {
      undo(argument.empty() ? 1 : static_cast<uint32_t>(std::stoul(argument)));
    } else if (command == "/mark" || command == "/back") {
      command == "/mark" ? mark(argument) : goBack(argument);
    } else if (command == "/cache") {
      draw(argument);
    } else if (command == "/save" || command == "/save!") {
      tell(keepIn(session(), argument, command == "/save!"));
    } else if (command == "/load" || command == "/load!") {
      tell(goOnWith(session(), argument, command == "/load!").text);
    } else if (command == "/help") {
      tell(chatHelp());
    } else {
      change(command, argument);
    }
    return true;
  }

  /// The conversation that --load names. False: cancelled.
  bool load(bool watched) {
    const Taken taken = goOnWith(session(), options_.load, /*reads=*/true);
    if (taken.cancelled && !interactive_) {
      return false;
    }
    if (!taken.done && !taken.cancelled) {
      throw Failure{kExitFailed, session().reason(ORIEL_ERROR_FORMAT)};
    }
    if (watched) {
      tell(taken.text + "\n");
    } else if (taken.lost) {
      tell("oriel: warning: " + terminalSafe(options_.load) + " is " + taken.text);
    }
    return true;
  }

  /// What there is beside this conversation, and which goes on.
  void change(const std::string& command, const std::string& name) {
    if (command == "/list") {
      tell(conversationList(conversations_));
      return;
    }
    const std::string why_not = command == "/new"      ? conversations_.begin(name)
                                : command == "/fork"   ? conversations_.fork(name)
                                : command == "/switch" ? conversations_.choose(name)
                                                       : conversations_.close(name);
    if (!why_not.empty()) {
      tell("oriel: " + why_not + "\n");
      return;
    }
    const bool several = conversations_.list().size() > 1;
    const std::string title = conversations_.active().title();
    input_.setPrompt(several ? title + "> " : "> ");
    tell(dim(several ? "this is " + title + " now" : "this is the only conversation now") + "\n");
  }

  /// Back to where the `turns`-th user's turn before the end began, if what the text before it sees is still stored,
  /// or there is a transcript to read again. A model that keeps a state may have to read some of that text again.
  void undo(uint32_t turns) {
    const std::vector<uint64_t> starts = turnsSeen(session()).starts;
    if (starts.size() < turns) {
      tell(dim(starts.empty() ? "there is no message to take back"
               : starts.size() == 1
                   ? "there is only one message to take back"
                   : "there are only " + std::to_string(starts.size()) + " messages to take back") +
           "\n");
      return;
    }
    const uint64_t begin = starts[starts.size() - turns];
    const oriel_status status = goingBack(
        begin, [&] { return oriel_session_rewind_turns(session().get(), turns, rereads()); });
    if (status == ORIEL_OK) {
      tell(dim(turns == 1 ? "the last message and its reply are taken back"
                          : "the last " + std::to_string(turns) +
                                " messages and their replies are taken back") +
           "\n");
    }
  }

  uint32_t rereads() const { return options_.common.transcript_bytes != 0 ? ORIEL_READ_AGAIN : 0; }

  /// Says why it did not come to that.
  template <typename Call>
  oriel_status goingBack(uint64_t to, const Call& call) {
    const CancelOnInterrupt cancel(session().get());
    const oriel_status status = session().cancellable(call);
    if (status == ORIEL_ERROR_CONTEXT) {
      tell(dim("too late: some of what came before that message is stored no longer; /reset starts "
               "afresh") +
           "\n");
    } else if (status == ORIEL_ERROR_CANCELLED) {
      tell("\n" +
           dim(session().stats().position < to
                   ? "stopped before all that came before was read again; /reset starts afresh"
                   : "stopped; nothing is taken back") +
           "\n");
    } else {
      session().check(status);
    }
    return status;
  }

  std::vector<oriel_mark> marks() const {
    oriel_mark marks[ORIEL_MARKS] = {};
    size_t count = 0;
    session().check(oriel_session_get_marks(session().get(), marks, ORIEL_MARKS, &count));
    return {marks, marks + count};
  }

  void mark(const std::string& name) {
    const oriel_status status = oriel_session_mark(session().get(), name.c_str());
    if (status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_CONTEXT) {
      tell("oriel: " +
           (status == ORIEL_ERROR_CONTEXT
                ? "there are " + std::to_string(ORIEL_MARKS) +
                      " marks already: give one of their names, which moves it"
                : std::string("a mark's name has at most 31 bytes")) +
           "\n");
      return;
    }
    session().check(status);
    tell(dim("/back " + terminalSafe(name) + " returns to here") + "\n");
  }

  /// To a mark; without a name all of them are listed.
  void goBack(const std::string& name) {
    std::string names;
    uint64_t to = 0;
    bool found = false;
    for (const oriel_mark& mark : marks()) {
      names += (names.empty() ? "" : ", ") + terminalSafe(mark.name);
      to = name == mark.name ? mark.position : to;
      found = found || name == mark.name;
    }
    if (!found) {
      tell(names.empty() ? "there are no marks: /mark NAME makes one\n"
           : name.empty()
               ? "marks: " + names + "\n"
               : "there is no mark " + terminalSafe(name) + ": the marks are " + names + "\n");
      return;
    }
    const oriel_status status = goingBack(
        to, [&] { return oriel_session_return(session().get(), name.c_str(), rereads()); });
    if (status == ORIEL_OK) {
      tell(dim("back at " + terminalSafe(name)) + "\n");
    }
  }

  void draw(const std::string& path) const {
    const CacheView cache = cacheViewOf(model_, session(), pinned_tokens_);
    if (path.empty()) {
      tell(cacheText(cache, terminalColumns()));
      return;
    }
    if (!isSvgName(path)) {
      tell("oriel: the drawing is SVG: give a name that ends with .svg\n");
      return;
    }
    try {
      writeResultFile(path, cacheSvg(cache));
      tell(dim("drawn") + "\n");
    } catch (const Failure& failure) {
      tell("oriel: " + terminalSafe(failure.message) + "\n");
    }
  }

  void showStats() const {
    const oriel_stats stats = session().stats();
    char text[512];
    std::snprintf(
        text, sizeof(text),
        "window       %u of %u tokens\n"
        "so far       %llu tokens, %llu of them forgotten\n"
        "device       %s in %llu submissions\n"
        "host         %s\n",
        stats.window_used, stats.window_capacity, static_cast<unsigned long long>(stats.position),
        static_cast<unsigned long long>(stats.evicted), formatSize(stats.device_bytes).c_str(),
        static_cast<unsigned long long>(stats.submissions), formatSize(stats.host_bytes).c_str());
    tell(text);
    if (stats.tokens_read_again != 0) {
      tell("read again   " + std::to_string(stats.tokens_read_again) +
           " tokens, to go back or to forget\n");
    }
  }

  oriel_status addUser(const std::string& line) const {
    return session().cancellable(
        [&] { return oriel_chat_add(session().get(), "user", line.data(), line.size()); });
  }

  /// One user message and its reply. False: cancelled, where that ends the program.
  bool turn(const std::string& line) {
    const CancelOnInterrupt cancel(session().get());
    const TurnsSeen before = turnsSeen(session());
    const uint64_t begin = before.position;
    const oriel_status added = addUser(line);
    if (interactive_ && added == ORIEL_ERROR_CANCELLED) {
      const bool whole = session().stats().position == begin;
      tell("\n" +
           dim(whole ? "stopped; the message is taken back"
                     : "stopped before all of the message was read; /reset starts afresh") +
           "\n");
      if (whole) {
        input_.giveBack(line);
      }
      input_.replyEnded(/*stopped=*/true);
      return true;
    }
    if (interactive_ && added == ORIEL_ERROR_TEXT) {
      tell("oriel: " + model_.diagnostics().reason(added) + "\n");
      return true;
    }
    session().check(added);
    tellWhatIsLost(begin);
    const bool whole = answer(before);
    return interactive_ || whole;
  }

  /// One reply, and those to the results of tools that it calls. False: cancelled.
  bool answer(const TurnsSeen& before) {
    Reply reply = replyNow(before, /*behind_results=*/false);
    for (uint32_t round = 1; calls(reply); ++round) {
      if (round > kMostToolRounds) {
        tell(dim("the model still calls tools: stopped after " + std::to_string(kMostToolRounds) +
                 " rounds") +
             "\n");
        break;
      }
      if (!giveResults(reply.parts.completeCalls())) {
        reply.cancelled = true;
        break;
      }
      reply = replyNow(before, /*behind_results=*/true);
    }
    if (!options_.common.json && !interactive_) {
      print("\n");
    }
    if (interactive_) {
      input_.replyEnded(reply.cancelled);
    }
    return !reply.cancelled;
  }

  bool calls(const Reply& reply) const {
    return reply.has_tools && !reply.cancelled && !reply.parts.completeCalls().empty();
  }

  /// Runs what is called. False: Ctrl-C; the results are in the conversation if they could be read.
  bool giveResults(const std::vector<ToolCall>& calls) {
    const bool watched = isTerminal(Stream::kErr) && !options_.common.json;
    const std::string results = tools_.results(calls, watched);
    const bool stopped = interrupts() != 0;
    spareCalls();  // that Ctrl-C stopped a tool
    const oriel_status added = session().cancellable(
        [&] { return oriel_chat_add_json(session().get(), results.data(), results.size()); });
    if (added == ORIEL_ERROR_CANCELLED) {
      tell(interactive_
               ? "\n" + dim("stopped before the results were read; /reset starts afresh") + "\n"
               : "");
      return false;
    }
    session().check(added);
    return !stopped;
  }

  /// `behind_results`: --tool-choice required has had its call, the model may answer now.
  Reply replyNow(const TurnsSeen& before, bool behind_results) {
    const bool json = options_.common.json;
    Reply reply;
    reply.streams = !json;
    reply.shows_work = interactive_ && !json && isTerminal(Stream::kErr);
    reply.has_tools = !options_.chat.tools.empty();
    reply.form_file = options_.reply.form_file;
    reply.at_each_token = [this] { input_.takeTypedAhead(); };
    oriel_generate_options sampling = generateOptions(options_.common, options_.reply_tokens);
    setReplyOptions(options_.reply, &sampling);
    if (behind_results && sampling.tool_choice == ORIEL_TOOLS_REQUIRED) {
      sampling.tool_choice = ORIEL_TOOLS_CHECKED;
    }
    chatReply(session(), sampling, &reply);
    const oriel_stats stats = session().stats();
    if (json) {
      printJson(replyFields(reply, stats));
    } else if (!reply.parts.text.empty() || !calls(reply)) {
      print("\n");
    }
    if (interactive_ && isTerminal(Stream::kErr)) {
      showSpeed(reply, stats, before);
    }
    return reply;
  }

  /// A message that is longer than the window is read, but not answered as a whole.
  void tellWhatIsLost(uint64_t begin) const {
    const TurnsSeen seen = turnsSeen(session());
    const uint64_t first = std::max(begin, seen.sinks);
    if (seen.first_seen > first) {
      const uint64_t tokens = seen.position - begin;
      tellLoss("the message", seen.first_seen - first, tokens, tokens, options_.common,
               model_.plan());
    }
  }

  void showSpeed(const Reply& reply, const oriel_stats& stats, const TurnsSeen& before) const {
    std::string line = std::to_string(reply.result.tokens) + " tok";
    if (reply.result.decode_tokens_per_s > 0) {
      char speed[32];
      std::snprintf(speed, sizeof(speed), " · %.*f tok/s",
                    reply.result.decode_tokens_per_s < 10 ? 1 : 0,
                    reply.result.decode_tokens_per_s);
      line += speed;
    }
    line += " · window " + std::to_string(stats.window_used) + "/" +
            std::to_string(stats.window_capacity);
    const TurnsSeen now = turnsSeen(session());
    const std::string forgotten = forgottenText(before, now);
    if (!forgotten.empty()) {
      line += " · " + forgotten;
    } else if (stats.evicted > 0) {
      line += " · " + std::to_string(stats.evicted) + " tokens forgotten";
    }
    if (reply.cancelled) {
      line += " · stopped";
    } else if (reply.result.stop_reason == ORIEL_STOP_LENGTH) {
      line += " · cut off by --tokens";
    }
    tell(dim(line) + "\n");
    const uint64_t longest = longestForgotten(before, now);
    if (4 * longest > model_.plan().window_tokens) {
      tellText(dim("a turn of " + std::to_string(longest) +
                   " tokens is no longer seen; more --memory or a longer "
                   "--window holds more, --evict tokens keeps part of a turn") +
               "\n");
    }
    tell("\n");
  }

  const ChatOptions& options_;
  ChatInput input_;
  const bool interactive_ = input_.interactive();
  const uint32_t pinned_tokens_;
  Model model_;
  Conversations conversations_;
  ToolRunner tools_;
};

}  // namespace

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
