#include "chat/chat.h"

#include <algorithm>

#include "chat/conversations.h"
#include "output.h"
#include "pictures/message_pictures.h"
#include "plan/chart.h"
#include "reply/messages.h"
#include "reply/reply_options.h"
#include "system.h"
#include "terminal/line_editor.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {

const std::vector<ChatCommand>& chatCommands() {
  static const std::vector<ChatCommand> commands = {
      {"/retry", Takes::kNothing, "", "another reply to the last message", &Chat::retry},
      {"/undo", Takes::kMaybeCount, "[N]",
       "take back the last message and its reply, or the last N", &Chat::takeBack},
      {"/reset", Takes::kNothing, "", "begin anew", &Chat::reset},
      {"/system", Takes::kMaybeText, "[TEXT]",
       "the system message; TEXT: another one, none: none; what was said stays", &Chat::setSystem},
      {"/set", Takes::kMaybeSetting, "[NAME VALUE]",
       "sampling, memory and context; alone: all settings", &Chat::setOrShow},
      {"/model", Takes::kModel, "NAME|FILE", "go on in another model; what was said stays",
       &Chat::setModel},
      {"/plan", Takes::kMaybeText, "[SIZE]",
       "show the use of the memory; SIZE: show the plan for SIZE bytes", &Chat::tellPlan},
      {"/mark", Takes::kName, "NAME", "name this place", &Chat::nameOrGoBack},
      {"/back", Takes::kMaybeName, "[NAME]", "return to it; alone: list them", &Chat::nameOrGoBack},
      {"/new", Takes::kMaybeName, "[NAME]", "another conversation next to this one (--sessions N)",
       &Chat::change},
      {"/fork", Takes::kMaybeName, "[NAME]", "the same, going on from here", &Chat::change},
      {"/switch", Takes::kName, "NAME", "to another one, by name or number", &Chat::change},
      {"/list", Takes::kNothing, "", "all of them", &Chat::change},
      {"/close", Takes::kMaybeName, "[NAME]", "close this one, or that", &Chat::change},
      {"/save", Takes::kFile, "FILE",
       "save the conversation to a file; /save! FILE: over any other file", &Chat::saveOrLoad},
      {"/save!", Takes::kFile, "FILE", "", &Chat::saveOrLoad},
      {"/load", Takes::kFile, "FILE",
       "load a saved chat; /load! FILE: read its messages again if the state does not fit",
       &Chat::saveOrLoad},
      {"/load!", Takes::kFile, "FILE", "", &Chat::saveOrLoad},
      {"/cache", Takes::kMaybeFile, "[FILE.svg]", "draw the context; with a name: as SVG",
       &Chat::draw},
      {"/stats", Takes::kNothing, "", "memory, context and work so far", &Chat::tellStats},
      {"/copy", Takes::kNothing, "", "copy the last reply to the clipboard", &Chat::copyReply},
      {"/read", Takes::kFile, "FILE", "send a text file with the next message", &Chat::readFile},
      {"/image", Takes::kFile, "FILE",
       "send a PNG or JPEG picture with the next message (--mmproj)", &Chat::addImage},
      {"/edit", Takes::kNothing, "", "write the next message in $EDITOR (or Ctrl-X Ctrl-E)",
       &Chat::editMessage},
      {"/help", Takes::kNothing, "", "", &Chat::tellHelp},
      {"/?", Takes::kNothing, "", "", &Chat::tellHelp},
      {"/clear", Takes::kNothing, "", "", &Chat::reset},
      {"/quit", Takes::kNothing, "", "leave (or Ctrl-D)", nullptr},
      {"/exit", Takes::kNothing, "", "", nullptr},
      {"/bye", Takes::kNothing, "", "", nullptr},
  };
  return commands;
}

std::string chatHelp() {
  constexpr size_t kColumn = 20;
  std::string text;
  for (const ChatCommand& command : chatCommands()) {
    if (*command.help != '\0') {
      std::string usage = std::string(command.name) + " " + command.arguments;
      usage.resize(std::max(usage.size() + 2, kColumn), ' ');
      text += usage + command.help + "\n";
    }
  }
  return text +
         "\"\"\"                 begins and ends a message of several lines\n"
         "Alt-Enter           begin a new line; Up, Down, Ctrl-R: earlier messages\n"
         "Ctrl-C              stop the reply; at the prompt: drop the line\n"
         "Tab                 complete a command, a setting, a model or a file\n";
}

void Chat::tellHelp(const ChatCommand&, const std::string&) { tell(chatHelp()); }

void Chat::copyReply(const ChatCommand&, const std::string&) {
  const std::string reply = conversations_.active().said.lastReply();
  if (reply.empty()) {
    tell("No reply to copy yet\n");
  } else if (!copyToClipboard(reply)) {
    tell(
        "oriel: the reply cannot be copied: this terminal takes no escape sequences, or it is "
        "longer than " +
        formatSize(kMostCopiedBytes) + "\n");
  } else {
    tell(dim("Copied " + countOf(charactersOf(reply).size(), "character")) + "\n");
  }
}

void Chat::readFile(const ChatCommand&, const std::string& path) {
  try {
    const std::string text = attachment(path);
    read_ += "\n\n" + text;
    tell(dim("Read " + oneLine(path) + " (" + formatSize(text.size()) +
             "); it goes with your next message") +
         "\n");
  } catch (const Failure& failure) {
    tell("oriel: " + oneLine(failure.message) + "\n");
  }
}

void Chat::addImage(const ChatCommand&, const std::string& path) { (void)attach(path); }

bool Chat::attach(const std::string& path) {
  if (!options_.common.load.has("mmproj")) {
    tell(
        "oriel: this model has no eyes: start oriel chat with one that has some and its --mmproj "
        "FILE\n");
    return false;
  }
  try {
    const DecodedPicture picture = readPicture(path);
    images_.push_back(path);
    tell(dim("Read " + oneLine(path) + " (" + std::to_string(picture.width) + " x " +
             std::to_string(picture.height) + "); it goes with your next message") +
         "\n");
    return true;
  } catch (const Failure& failure) {
    tell("oriel: " + oneLine(failure.message) + "\n");
    return false;
  }
}

void Chat::editMessage(const ChatCommand&, const std::string&) { input_.edit(""); }

void Chat::reset(const ChatCommand&, const std::string&) {
  conversations_.reset();
  tell(dim("Conversation cleared") + "\n");
}

void Chat::takeBack(const ChatCommand&, const std::string& turns) {
  const uint32_t count = turns.empty() ? 1 : static_cast<uint32_t>(std::stoul(turns));
  if (undo(count)) {
    tell(dim(count == 1
                 ? "Took back the last message and its reply"
                 : "Took back the last " + std::to_string(count) + " messages and their replies") +
         "\n");
  }
}

void Chat::nameOrGoBack(const ChatCommand& command, const std::string& name) {
  std::string(command.name) == "/mark" ? mark(name) : goBack(name);
}

void Chat::tellStats(const ChatCommand&, const std::string&) { showStats(); }

void Chat::saveOrLoad(const ChatCommand& command, const std::string& path) {
  const std::string name = command.name;
  if (name.compare(0, 5, "/save") == 0) {
    tell(keepIn(session(), path, name == "/save!"));
    return;
  }
  const Taken taken = goOnWith(session(), path, name == "/load!");
  trackLoaded(taken.done);
  tell(taken.text);
}

void Chat::trackLoaded(bool done) {
  if (!done) {
    return;
  }
  Said& said = conversations_.active().said;
  said.loseTrack();
  Json list;
  (void)described(&list, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_transcript_export(session().get(), text, capacity, needed);
  });
  if (list.is_array() && !list.empty()) {
    said.take(list);
  }
}

/// Takes back the last message and sends it again. If going back is impossible, everything is read again.
void Chat::retry(const ChatCommand&, const std::string&) {
  const Json message = conversations_.active().said.lastMessage();
  if (textOfMessage(message).empty()) {
    tell(dim("No message to reply to again") + "\n");
    return;
  }
  const Settings sampling = samplingOf(options_.common);
  if (sampling.has("greedy") || sampling.real("temperature", 1) == 0) {
    tell("oriel: the same reply would come: /set greedy off, or /set temperature 0.7\n");
    return;
  }
  const std::vector<uint64_t> starts = turnsSeen(session()).starts;
  const uint64_t begin = starts.empty() ? 0 : starts.back();
  oriel_status status = tryBack(nullptr, 1);
  if (status == ORIEL_ERROR_CONTEXT && conversations_.active().said.whole()) {
    status = conversations_.readAgain(/*left_out=*/1);
  }
  if (status == ORIEL_ERROR_CANCELLED) {
    tell(
        "\n" +
        dim(session().stats().position < begin
                ? "stopped before the conversation was read again; /reset starts a new conversation"
                : "stopped; nothing was taken back") +
        "\n");
    return;
  }
  session().check(status);
  conversations_.active().said.takeBack(1);
  ++retries_;
  (void)turn(message);
}

/// Goes back to the start of the `turns`-th user turn from the end, if the text visible before it is still stored or a
/// transcript exists. Models with a state may read some of that text again.
bool Chat::undo(uint32_t turns) {
  const std::vector<uint64_t> starts = turnsSeen(session()).starts;
  if (starts.size() < turns) {
    tell(dim(starts.empty() ? "No message to take back"
             : starts.size() == 1
                 ? "Only one message to take back"
                 : "Only " + std::to_string(starts.size()) + " messages to take back") +
         "\n");
    return false;
  }
  const uint64_t begin = starts[starts.size() - turns];
  const oriel_status status = goingBack(begin, nullptr, turns);
  if (status == ORIEL_OK) {
    conversations_.active().said.takeBack(turns);
  }
  return status == ORIEL_OK;
}

oriel_status Chat::tryBack(const char* mark, uint32_t turns) const {
  const CancelOnInterrupt cancel(session().get());
  return session().cancellable([&] {
    return oriel_session_go_back(session().get(),
                                 mark != nullptr ? ORIEL_BACK_TO_MARK : ORIEL_BACK_BY_TURNS, turns,
                                 mark, ORIEL_READ_AGAIN);
  });
}

oriel_status Chat::goingBack(uint64_t to, const char* mark, uint32_t turns) const {
  const oriel_status status = tryBack(mark, turns);
  if (status == ORIEL_ERROR_CONTEXT) {
    tell(dim("Too late: part of the context before that message is not stored any more; /reset "
             "starts a new conversation") +
         "\n");
  } else if (status == ORIEL_ERROR_CANCELLED) {
    tell(
        "\n" +
        dim(session().stats().position < to
                ? "stopped before the conversation was read again; /reset starts a new conversation"
                : "stopped; nothing was taken back") +
        "\n");
  } else {
    session().check(status);
  }
  return status;
}

void Chat::mark(const std::string& name) {
  const oriel_status status = oriel_session_mark(session().get(), name.c_str());
  if (status == ORIEL_ERROR_ARGUMENT || status == ORIEL_ERROR_CONTEXT) {
    tell("oriel: " +
         std::string(status == ORIEL_ERROR_CONTEXT
                         ? "16 marks are in use: reuse a name to move that mark"
                         : "a mark's name has at most 31 bytes") +
         "\n");
    return;
  }
  session().check(status);
  conversations_.active().said.mark(name);
  tell(dim("/back " + oneLine(name) + " returns to here") + "\n");
}

/// Goes back to a mark; without a name lists all marks.
void Chat::goBack(const std::string& name) {
  std::string names;
  uint64_t to = 0;
  bool found = false;
  const Json now = session().describe();
  for (const Json& mark : now["marks"]) {
    names += (names.empty() ? "" : ", ") + oneLine(textIn(mark, "name"));
    if (mark["name"] == name) {
      to = numberIn(mark, "position");
      found = true;
    }
  }
  if (!found) {
    tell(names.empty()  ? "No marks: /mark NAME makes one\n"
         : name.empty() ? "marks: " + names + "\n"
                        : "No mark " + oneLine(name) + ": the marks are " + names + "\n");
    return;
  }
  const oriel_status status = goingBack(to, name.c_str(), 0);
  if (status == ORIEL_OK) {
    conversations_.active().said.goBack(name);
    tell(dim("Back at " + oneLine(name)) + "\n");
  }
}

void Chat::draw(const ChatCommand&, const std::string& path) {
  const CacheView cache = cacheViewOf(model_, session(), pinned_tokens_);
  if (path.empty()) {
    tell(cacheText(cache, terminalColumns()));
    return;
  }
  if (!isSvgName(path)) {
    tell("oriel: the drawing is SVG: give a name that ends in .svg\n");
    return;
  }
  try {
    writeResultFile(path, cacheSvg(cache));
    tell(dim("Wrote " + oneLine(path)) + "\n");
  } catch (const Failure& failure) {
    tell("oriel: " + oneLine(failure.message) + "\n");
  }
}

void Chat::showStats() const {
  const Json now = session().describe();
  const auto counted = [&](const char* field) { return grouped(numberIn(now, field)); };
  tell("context      " + counted("window_used") + " of " + counted("window_capacity") +
       " tokens\nso far       " + counted("position") + " tokens, " + counted("evicted") +
       " of them dropped\nmemory       " + formatSize(numberIn(now, "device_bytes")) +
       "\nhost         " + formatSize(numberIn(now, "host_bytes")) + "\n");
  if (numberIn(now, "tokens_read_again") != 0) {
    tell("read again   " + counted("tokens_read_again") + " tokens, to go back or to drop turns\n");
  }
  if (numberIn(now, "tokens_kept") != 0) {
    tell("retrieval    " + counted("tokens_kept") + " tokens in a file, " +
         counted("tokens_recalled") + " of them brought back\n");
  }
  if (numberIn(now, "tokens_drafted") != 0) {
    tell("drafted      " + counted("tokens_drafted") + " tokens, " + counted("tokens_accepted") +
         " of them accepted\n");
  }
}

/// Lists the conversations, or switches to one.
void Chat::change(const ChatCommand& what, const std::string& name) {
  const std::string command = what.name;
  if (command == "/list") {
    tell(conversationList(conversations_));
    return;
  }
  const std::string why_not = command == "/new"      ? conversations_.begin(name)
                              : command == "/fork"   ? conversations_.fork(name)
                              : command == "/switch" ? conversations_.choose(name)
                                                     : conversations_.close(name);
  if (!why_not.empty()) {
    tell("oriel: " + oneLine(why_not) + "\n");
    return;
  }
  const bool several = conversations_.list().size() > 1;
  const std::string title = conversations_.active().title();
  input_.setPrompt(several ? title + "> " : "> ");
  tell(dim((command == "/close" ? "Closed. " : "") + std::string("Switched to ") + title +
           (several ? "" : ", the only conversation")) +
       "\n");
}

}  // namespace cli
