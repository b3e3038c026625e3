// Commands that continue a conversation differently: in another model, with another system message, or with other
// options.
#include <chrono>
#include <utility>

#include "chat/chat.h"
#include "chat/chat_settings.h"
#include "measure/nearest.h"
#include "plan/plan_report.h"
#include "plan/plan_source.h"
#include "reply/file_sampling.h"
#include "sizes.h"
#include "terminal/terminal.h"

namespace cli {
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
