#include "chat/chat.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "chat/chat_commands.h"
#include "chat/chat_line.h"
#include "chat/kept_conversation.h"
#include "chat/lost_device.h"
#include "failure.h"
#include "models/model_store.h"
#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

/// A line of a pipe is never a command.
ChatLine messageOf(const std::string& line) {
  const bool empty = line.find_first_not_of(" \t\n") == std::string::npos;
  return {empty ? ChatLine::Kind::kEmpty : ChatLine::Kind::kMessage, line, nullptr, {}};
}

}  // namespace

Chat::Chat(const ChatOptions& options, uint32_t pinned_tokens)
    : options_(options),
      pinned_tokens_(pinned_tokens),
      model_(options.common, Load::kDevice, pinned_tokens_),
      conversations_(beginning(), &model_),
      tools_(options_.allowed_tools) {
  options_.common.load.set("memory", model_.plan().memory_bytes);  // what is free changes
}

ConversationStart Chat::beginning() const { return {options_.common, options_.system}; }

/// Until the input ends; returns the exit code.
int Chat::run() {
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
        if (!onSomeDevice([&] { return obey(*said.command, said.argument); })) {
          return kExitDone;
        }
        break;
      case ChatLine::Kind::kMessage:
        retries_ = 0;
        if (!onSomeDevice([&] { return turn(said.text); })) {
          return kExitCancelled;
        }
        break;
    }
  }
}

void Chat::tellModel() const {
  const oriel_plan& plan = model_.plan();
  const std::string name = model_.text("name");
  tell(bold(oneLine(name.empty() ? model_.text("architecture") : name)) + " on " +
       oneLine(model_.text("device")) + "\n" + formatSize(plan.total_bytes) + " of " +
       formatSize(plan.memory_bytes) + " used; remembers the last " +
       std::to_string(plan.window_tokens) + " tokens, and forgets " +
       (options_.common.session.is("evict", "tokens") ? "the oldest token by token"
                                                      : "whole turns, the oldest first") +
       (conversations_.capacity() > 1 ? "; room for " + std::to_string(conversations_.capacity()) +
                                            " conversations, /new begins another"
                                      : "") +
       "\n");
}

void Chat::greet() const {
  tellModel();
  if (usesBundledModel(options_.common) && storedModels().empty()) {
    tell(dim("This model is tiny: it remembers what you tell it and does small sums and letters, "
             "and knows little else. `oriel pull smollm2-135m` gets a larger one (101 MiB), "
             "`oriel models` lists more.") +
         "\n");
  }
  tell(dim("/help lists the commands, Ctrl-D leaves") + "\n\n");
}

/// False: leave.
bool Chat::obey(const ChatCommand& command, const std::string& argument) {
  if (command.run == nullptr) {
    return false;
  }
  (this->*command.run)(command, argument);
  return true;
}

/// The conversation that --load names. False: cancelled.
bool Chat::load(bool watched) {
  const Taken taken = goOnWith(session(), options_.load, /*reads=*/true);
  trackLoaded(taken.done);
  if (taken.cancelled && !interactive_) {
    return false;
  }
  if (!taken.done && !taken.cancelled) {
    throw Failure{kExitFailed, session().reason(ORIEL_ERROR_FORMAT)};
  }
  if (watched) {
    tell(taken.text + "\n");
  } else if (taken.lost) {
    tell("oriel: warning: " + oneLine(options_.load) + " is " + taken.text);
  }
  return true;
}

oriel_status Chat::addUser(const std::string& line) const {
  return session().cancellable(
      [&] { return oriel_chat_add(session().get(), "user", line.data(), line.size()); });
}

/// One user message and its reply. False: cancelled, where that ends the program.
bool Chat::turn(const std::string& line) {
  const CancelOnInterrupt cancel(session().get());
  const TurnsSeen before = turnsSeen(session());
  const uint64_t begin = before.position;
  turn_ = {userMessage(line)};
  model_.hush(true);  // tellWhatIsLost() says more
  const oriel_status added = addUser(line);
  model_.hush(false);
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
  conversations_.active().said.add(std::move(turn_));
  return interactive_ || whole;
}

/// One reply, and those to the results of tools that it calls. False: cancelled.
bool Chat::answer(const TurnsSeen& before) {
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

bool Chat::calls(const Reply& reply) const {
  return reply.has_tools && !reply.cancelled && !reply.parts.completeCalls().empty();
}

/// Runs what is called. False: Ctrl-C; the results are in the conversation if they could be read.
bool Chat::giveResults(const std::vector<ToolCall>& calls) {
  const bool watched = isTerminal(Stream::kErr) && !options_.common.json;
  const std::string results = tools_.results(calls, watched);
  for (Json& message : Json::parse(results)) {
    turn_.push_back(std::move(message));
  }
  const bool stopped = interrupts() != 0;
  spareCalls();  // that Ctrl-C stopped a tool
  const oriel_status added = session().cancellable(
      [&] { return oriel_chat_add(session().get(), nullptr, results.data(), results.size()); });
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
Reply Chat::replyNow(const TurnsSeen& before, bool behind_results) {
  const bool json = options_.common.json;
  Reply reply;
  reply.streams = !json;
  reply.shows_work = interactive_ && !json && isTerminal(Stream::kErr);
  reply.has_tools = options_.common.session.has("tools");
  reply.form_file = formFile(options_.common);
  reply.at_each_token = [this] { input_.takeTypedAhead(); };
  Settings sampling = options_.common.reply;
  sampling.set("seed", nextSeed(sampling.number("seed"), retries_));
  if (behind_results && sampling.is("tool_choice", "required")) {
    sampling.set("tool_choice", "checked");
  }
  chatReply(session(), sampling, &reply);
  turn_.push_back(replyMessage(reply.parts));
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
void Chat::tellWhatIsLost(uint64_t begin) const {
  const TurnsSeen seen = turnsSeen(session());
  const uint64_t first = std::max(begin, seen.sinks);
  if (seen.first_seen > first) {
    const uint64_t tokens = seen.position - begin;
    tellLoss("the message", seen.first_seen - first, tokens, tokens, options_.common,
             model_.plan());
  }
}

void Chat::showSpeed(const Reply& reply, const oriel_stats& stats, const TurnsSeen& before) const {
  std::string line = std::to_string(reply.result.tokens) + " tok";
  if (reply.result.decode_tokens_per_s > 0) {
    char speed[32];
    std::snprintf(speed, sizeof(speed), " · %.*f tok/s",
                  reply.result.decode_tokens_per_s < 10 ? 1 : 0, reply.result.decode_tokens_per_s);
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

}  // namespace cli
