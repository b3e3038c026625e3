#include "chat/chat.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "chat/chat_input.h"
#include "chat/conversations.h"
#include "measure/divergence.h"
#include "models/catalogue.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "plan/plan_report.h"
#include "reply/local_tools.h"
#include "reply/messages.h"
#include "reply/reply_options.h"
#include "system.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// Lines from a pipe are never commands.
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
      tools_(options_.allowed_tools),
      saves_(interactive_ && isTerminal(Stream::kOut) && !options.common.json && !options.no_save &&
             !savedChatsFolder().empty()) {
  // the amount of free memory changes
  options_.common.load.set("memory", model_.plan().memory_bytes);
}

ConversationStart Chat::beginning() const { return {options_.common, options_.system}; }

/// Runs until the input ends; returns the exit code.
int Chat::run() {
  const bool watched = interactive_ && (isTerminal(Stream::kErr) || options_.common.verbose);
  const bool prompts =
      watched || (interactive_ && isTerminal(Stream::kOut) && !options_.common.json);
  if (watched) {
    greet();
  }
  if (options_.keeps_history) {
    input_.keepHistory(historyFile());
  }
  if (!options_.continued.messages.empty()) {
    goOnWithSaved();
  }
  if (!options_.load.empty() && !onSomeDevice([&] { return load(watched); })) {
    return kExitCancelled;
  }
  bool leaving = false;  // Ctrl-C was the last input
  for (std::string line;;) {
    switch (input_.next(prompts, &line)) {
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
    if (interactive_ && !takeBlock(&line, watched)) {
      continue;
    }
    ChatLine said = interactive_ ? parseChatLine(line) : messageOf(line);
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
        if (!takeDropped(&said.text)) {
          input_.giveBack(line);
          break;
        }
        if (said.text.empty()) {
          break;
        }
        if (!onSomeDevice([&] { return turn(userMessage(said.text + read_, images_)); })) {
          return kExitCancelled;
        }
        read_.clear();
        images_.clear();
        break;
    }
    save();
  }
}

/// Pictures at the end of a message go with it. False: one cannot be read.
bool Chat::takeDropped(std::string* text) {
  const size_t before = images_.size();
  while (interactive_ && options_.common.load.has("mmproj")) {
    const std::string path = takeDroppedPicture(text);
    if (path.empty()) {
      break;
    }
    if (!attach(path)) {
      images_.resize(before);
      return false;
    }
  }
  std::reverse(images_.begin() + static_cast<std::ptrdiff_t>(before), images_.end());
  return true;
}

bool Chat::takeBlock(std::string* text, bool watched) {
  const std::string quotes = "\"\"\"";
  if (text->compare(0, quotes.size(), quotes) != 0) {
    return true;
  }
  const auto closed = [&] {
    const size_t end = text->find_last_not_of(" \t\n");
    return end != std::string::npos && end + 1 >= 2 * quotes.size() &&
           text->compare(end + 1 - quotes.size(), quotes.size(), quotes) == 0;
  };
  const std::string prompt = input_.prompt();
  input_.setPrompt("... ");
  bool whole = closed();
  for (std::string line; !whole && input_.next(watched, &line) == ChatInput::Result::kText;) {
    *text += "\n" + line;
    whole = closed();
  }
  input_.setPrompt(prompt);
  if (whole) {
    text->erase(text->find_last_not_of(" \t\n") + 1 - quotes.size());
    text->erase(0, quotes.size());
    const size_t first = text->find_first_not_of('\n');
    // A leading space makes it a message, even if it looks like a command.
    *text = " " + text->substr(std::min(first, text->size()));
    text->erase(text->find_last_not_of('\n') + 1);
  }
  return whole;
}

std::string Chat::memoryText() const {
  const oriel_plan& plan = model_.plan();
  return "Uses " + formatSize(plan.total_bytes) + " (limit " +
         sizeAsTyped(options_.common.load, "memory", plan.memory_bytes) +
         "). Context: " + countOf(uint64_t{plan.window_tokens} + plan.sink_tokens, "token");
}

void Chat::greet() const {
  const std::string name = model_.text("name");
  tell(bold(oneLine(name.empty() ? model_.text("architecture") : name)) + " on " +
       oneLine(model_.text("device")) + "\n" + memoryText() + "; " +
       (options_.common.session.is("evict", "tokens") ? "the oldest tokens drop out first"
                                                      : "the oldest turns drop out first") +
       (conversations_.capacity() > 1
            ? "; room for " + std::to_string(conversations_.capacity()) + " conversations (/new)"
            : "") +
       "\n");
  if (usesBundledModel(options_.common) && storedModels().empty()) {
    tell(dim("This model is tiny: it remembers what you tell it and does small sums and letters, "
             "and knows little else. `oriel pull smollm2-135m` gets a larger one (101 MiB), "
             "`oriel models` lists more.") +
         "\n");
  }
  if (saves_ && savesFirstChat()) {
    tell(dim("Conversations are saved in " + shownChatsFolder() +
             " (not with --no-save, or with ORIEL_NO_SAVE=1)") +
         "\n");
  }
  tell(dim("/help lists the commands, Ctrl-D leaves") + "\n\n");
}

/// Reads the messages again, in the current model.
void Chat::goOnWithSaved() {
  Conversation& active = conversations_.active();
  active.said.take(options_.continued.messages);
  active.file = options_.continued.file;
  active.saved = active.said.messages();
  const auto start = std::chrono::steady_clock::now();
  conversations_.closeAll();
  const Conversations::Opened opened = conversations_.openAll(beginning(), /*restores=*/false);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (interactive_) {
    tellLastTurns();
    tell(dim("Loaded" + openedText(opened, took.count())) + "\n\n");
  }
}

void Chat::tellLastTurns() const {
  tell(dim(lastTurns(conversations_.active().said.messages(), noteColumns())));
}

void Chat::save() {
  Conversation& active = conversations_.active();
  if (!saves_ || active.said.turns() == 0 || !active.said.whole()) {
    return;
  }
  Json messages = active.said.messages();
  if (messages == active.saved) {
    return;
  }
  SavedChat chat;
  chat.file = active.file;
  chat.model = options_.common.model;
  std::error_code error;
  if (const auto file = std::filesystem::u8path(chat.model); std::filesystem::exists(file, error)) {
    chat.model = std::filesystem::absolute(file, error).u8string();
  }
  chat.system = options_.system;
  chat.messages = std::move(messages);
  try {
    saveChat(&chat);
    active.file = chat.file;
    active.saved = std::move(chat.messages);
  } catch (const Failure& failure) {
    saves_ = false;
    tell("oriel: conversations are not saved any more: " + oneLine(failure.message) + "\n");
  }
}

/// False: leave.
bool Chat::obey(const ChatCommand& command, const std::string& argument) {
  if (command.run == nullptr) {
    return false;
  }
  (this->*command.run)(command, argument);
  return true;
}

/// Loads the conversation given by --load. False: cancelled.
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
    tellLastTurns();
    tell(taken.text + "\n");
  } else if (taken.lost) {
    tell("oriel: warning: " + oneLine(options_.load) + " is " + taken.text);
  }
  return true;
}

oriel_status Chat::addUser(const Json& message) const {
  Json list = Json::array({message});
  MessagePictures pictures;
  pictures.take(&list, "");
  const std::string text = textOfMessage(message);
  return session().cancellable([&] {
    return pictures.empty() ? oriel_chat_add(session().get(), "user", text.data(), text.size())
                            : pictures.add(session().get(), messagesText(list));
  });
}

/// One user message and its reply. False: cancelled in a way that ends the program.
bool Chat::turn(const Json& message) {
  const CancelOnInterrupt cancel(session().get());
  const TurnsSeen before = turnsSeen(session());
  const uint64_t begin = before.position;
  turn_ = {message};
  model_.hush(true);  // tellWhatIsLost() gives details
  const oriel_status added = addUser(message);
  model_.hush(false);
  if (interactive_ && added == ORIEL_ERROR_CANCELLED) {
    const bool whole = session().stats().position == begin;
    tell("\n" +
         dim(whole
                 ? "stopped; the message was taken back"
                 : "stopped before all of the message was read; /reset starts a new conversation") +
         "\n");
    if (whole) {
      input_.giveBack(textOfMessage(message));
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

/// One reply, and the replies to results of its tool calls. False: cancelled.
bool Chat::answer(const TurnsSeen& before) {
  Reply reply = replyNow(before, /*behind_results=*/false);
  for (uint32_t round = 1; calls(reply); ++round) {
    if (round > kMostToolRounds) {
      tell(dim("The model still calls tools: stopped after " + std::to_string(kMostToolRounds) +
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

/// Runs the called tools. False: Ctrl-C; the results are in the conversation if they could be read.
bool Chat::giveResults(const std::vector<ToolCall>& calls) {
  const bool watched = isTerminal(Stream::kErr) && !options_.common.json;
  const std::string results = tools_.results(calls, watched);
  for (Json& message : jsonFrom(results)) {
    turn_.push_back(std::move(message));
  }
  const bool stopped = interrupts() != 0;
  spareCalls();  // only a tool was stopped by Ctrl-C
  const oriel_status added = session().cancellable(
      [&] { return oriel_chat_add(session().get(), nullptr, results.data(), results.size()); });
  if (added == ORIEL_ERROR_CANCELLED) {
    tell(interactive_
             ? "\n" +
                   dim("stopped before the results were read; /reset starts a new conversation") +
                   "\n"
             : "");
    return false;
  }
  session().check(added);
  return !stopped;
}

/// `behind_results`: --tool-choice required is satisfied, so the model may answer.
Reply Chat::replyNow(const TurnsSeen& before, bool behind_results) {
  const bool json = options_.common.json;
  Reply reply;
  reply.streams = !json;
  reply.shows_work = interactive_ && !json && isTerminal(Stream::kErr);
  reply.has_tools = options_.common.session.has("tools");
  reply.form_file = formFile(options_.common);
  reply.look = replyLook(options_.common);
  reply.at_each_token = [this] { input_.takeTypedAhead(); };
  Settings sampling = samplingOf(options_.common);
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

/// A message longer than the window is read, but part of it is evicted before the answer.
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
  line += " · context " + grouped(stats.window_used) + "/" + grouped(stats.window_capacity);
  const TurnsSeen now = turnsSeen(session());
  const std::string forgotten = forgottenText(before, now);
  if (!forgotten.empty()) {
    line += " · " + forgotten;
  } else if (stats.evicted > 0) {
    line += " · " + countOf(stats.evicted, "token") + " dropped";
  }
  if (reply.cancelled) {
    line += " · stopped";
  } else if (reply.result.stop_reason == ORIEL_STOP_LENGTH) {
    line += " · cut off by --tokens";
  }
  tell(dim(line) + "\n");
  const uint64_t longest = longestForgotten(before, now);
  if (4 * longest > model_.plan().window_tokens) {
    tellText(dim("A turn of " + countOf(longest, "token") +
                 " was dropped; more --memory or a longer --window holds more, --evict tokens "
                 "keeps part of a turn") +
             "\n");
  }
  tell("\n");
}

// Commands that continue a conversation differently: in another model, with another system message, or with other
// options.

namespace {

/// Throws Failure if the model could not be loaded. At this point nothing has been closed.
void checkFits(const ChatOptions& options, uint32_t pinned_tokens) {
  const Diagnostics diagnostics(/*verbose=*/false, /*warns=*/false);
  oriel::Options plan_options = memoryOptions(options.common, pinned_tokens);
  diagnostics.listen(&plan_options);
  const PlanSource source = PlanSource::ofFile(modelPath(options.common));
  const Json plan = source.plan(plan_options, diagnostics);
  if (!plannedFits(plan)) {
    throw Failure{kExitDoesNotFit,
                  source.title() + " does not fit in " +
                      sizeAsTyped(options.common.load, "memory", numberIn(plan, "memory_bytes")) +
                      ": it needs at least " + suggestSize(numberIn(plan, "minimum_bytes")) +
                      "; /set memory gives more"};
  }
}

}  // namespace

bool Chat::goOnWithOptions(ChatOptions next, Change change,
                           const std::function<std::string()>& done) {
  const auto start = std::chrono::steady_clock::now();
  const ChatOptions before = options_;
  const uint32_t pinned_before = pinned_tokens_;
  const bool other_model = next.common.model != before.common.model;
  const bool other_system = next.system != before.system;
  const bool needs_text = other_model || other_system || change == Change::kFormat;
  bool closed = false;
  try {
    next.common.file_sampling = fileSampling(modelPath(next.common));  // the file may be missing
    for (const auto& each : conversations_.list()) {
      if (needs_text && !each->said.whole()) {
        throw Failure{kExitFailed,
                      "this conversation was loaded without all of its text, which this needs: "
                      "/reset, or start with --transcript 64KiB"};
      }
    }
    const uint32_t pinned = change == Change::kFormat ? pinned_tokens_ : pinnedTokens(&next);
    shareSystem(&next, pinned);
    const bool loads =
        change == Change::kModel || pinned > model_.plan().sink_tokens ||
        next.common.load.text("prefix_tokens") != before.common.load.text("prefix_tokens");
    if (loads) {
      checkFits(next, pinned);
    }
    conversations_.keepAll();
    conversations_.closeAll();
    closed = true;
    if (loads) {
      model_.loadAgain(next.common, pinned);
    }
    options_ = next;
    pinned_tokens_ = pinned;
    const Conversations::Opened opened =
        conversations_.openAll(beginning(), !other_model && !other_system);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    tell(dim(done() + openedText(opened, took.count())) + "\n");
    return true;
  } catch (const Failure& failure) {
    if (closed) {
      options_ = before;
      pinned_tokens_ = pinned_before;
      conversations_.closeAll();
      model_.loadAgain(before.common, pinned_before);
      (void)conversations_.openAll(beginning(), /*restores=*/true);
    }
    tell("oriel: " + (failure.message.empty() ? "stopped" : oneLine(failure.message)) + "\n" +
         (closed ? dim("Nothing has changed") + "\n" : ""));
    clearInterrupts();
    return false;
  }
}

/// "; 2 turns (76 tokens) read again in 0.1 s"
std::string Chat::openedText(const Conversations::Opened& opened, double seconds) const {
  if (!opened.refused.empty()) {
    return "; the conversation begins anew: " + oneLine(opened.refused);
  }
  if (opened.turns_read != 0) {
    return "; " + countOf(opened.turns_read, "turn") + " (" + countOf(opened.tokens, "token") +
           ") read again in " + formatted("%.1f s", seconds) +
           (opened.turns_left_out != 0
                ? ", " + countOf(opened.turns_left_out, "older turn") + " left out"
                : "") +
           (opened.cancelled ? ", stopped" : "");
  }
  return opened.turns_left_out != 0 ? "; the conversation begins anew: what was said does not fit"
                                    : "";
}

void Chat::setModel(const ChatCommand&, const std::string& name) {
  if (options_.common.load.has("prefix_file")) {
    tell("oriel: the prefix of --prefix-file is of this model alone: start another chat\n");
    return;
  }
  ChatOptions next = options_;
  next.common.model = name;
  (void)goOnWithOptions(std::move(next), Change::kModel, [this] {
    const std::string title = model_.text("name");
    return "Switched to " + oneLine(title.empty() ? options_.common.model : title) + ". " +
           memoryText();
  });
}

void Chat::setSystem(const ChatCommand&, const std::string& text) {
  if (text.empty()) {
    tell(options_.system.empty() ? dim("No system message: /system TEXT sets one") + "\n"
                                 : terminalSafe(options_.system) + "\n");
    return;
  }
  if (options_.common.load.has("prefix_file")) {
    tell("oriel: the prefix of --prefix-file stands in its place: start another chat\n");
    return;
  }
  ChatOptions next = options_;
  next.system = text == "none" ? "" : text;
  (void)goOnWithOptions(std::move(next), Change::kBeginning, [this] {
    return std::string(options_.system.empty() ? "System message removed" : "System message set");
  });
}

void Chat::setOrShow(const ChatCommand&, const std::string& argument) {
  const size_t end = argument.find_first_of(" \t=");
  const std::string name = argument.substr(0, end);
  const size_t value_at = argument.find_first_not_of(" \t=", name.size());
  const ChatSetting* const setting = chatSetting(name);
  if (name.empty()) {
    Table table({{"setting"}, {"is"}, {"may be", false, 1}});
    for (const ChatSetting& each : chatSettings()) {
      table.row({each.name, shown(each, options_), allowedFor(each)});
    }
    cli::tell(table.text(noteColumns()));
    tell(dim("/set NAME VALUE changes one, /set NAME default restores its default") + "\n");
    return;
  }
  if (setting == nullptr) {
    std::vector<std::string> names;
    for (const ChatSetting& each : chatSettings()) {
      names.emplace_back(each.name);
    }
    const std::string near = nearest(name, names);
    tell("oriel: no setting " + oneLine(name) + ": " +
         (near.empty() ? "" : "did you mean " + near + "? ") + "/set lists them\n");
    return;
  }
  if (value_at == std::string::npos) {
    tell(std::string(setting->name) + " is " + shown(*setting, options_) + "; it may be " +
         allowedFor(*setting) + "\n");
    return;
  }
  ChatOptions next = options_;
  const std::string why_not = setChat(*setting, argument.substr(value_at), &next);
  if (!why_not.empty()) {
    tell("oriel: " + std::string(setting->name) + ": " + oneLine(why_not) + "\n");
    return;
  }
  const bool loads = setting->takes == ChatSetting::Takes::kModel;
  const auto done = [&] {
    const std::string line = std::string(setting->name) + " is " + shown(*setting, options_);
    return loads ? line + ". " + memoryText() : line;
  };
  if (setting->takes == ChatSetting::Takes::kNext) {
    options_ = std::move(next);
    const bool greedy = options_.common.reply.has("greedy");
    tell(dim(done() + (greedy && setting->option == std::string("temperature")
                           ? ", without effect while greedy is on (/set greedy off)"
                           : "")) +
         "\n");
    return;
  }
  (void)goOnWithOptions(std::move(next), loads ? Change::kModel : Change::kFormat, done);
}

void Chat::tellPlan(const ChatCommand&, const std::string& memory) {
  CommonOptions wanted = options_.common;
  uint64_t memory_bytes = model_.plan().memory_bytes;
  if (!memory.empty() && !parseSize(memory, &memory_bytes)) {
    tell("oriel: '" + oneLine(memory) +
         "' is not a size: write bytes, 300MB (10^6), 300MiB or 300M (2^20)\n");
    return;
  }
  wanted.load.set("memory", memory_bytes);
  wanted.load.setTyped("memory", memory.empty() ? wanted.load.typed("memory") : memory);
  const oriel::Options plan_options = memoryOptions(wanted, pinned_tokens_);
  const PlanSource source = PlanSource::ofFile(modelPath(options_.common));
  const Json plan = source.tryPlan(plan_options);
  if (plan.is_null()) {
    tell("oriel: " + source.title() +
         " cannot be planned for any longer: is the file still there?\n");
    return;
  }
  tell(describePlan(source, wanted.load, nullptr, plan, nullptr));
  if (!memory.empty() && plannedFits(plan)) {
    tell(dim("/set memory " + memory + " switches to this plan") + "\n");
  }
}

}  // namespace cli
