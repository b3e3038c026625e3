#include "chat/chat_line.h"

#include <vector>

#include "measure/nearest.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

enum class Takes { kNothing, kMaybeFile, kFile, kMaybeName, kName, kMaybeCount };

struct ChatCommand {
  const char* name;
  Takes takes;
};

constexpr ChatCommand kCommands[] = {
    {"/help", Takes::kNothing},    {"/undo", Takes::kMaybeCount}, {"/reset", Takes::kNothing},
    {"/mark", Takes::kName},       {"/back", Takes::kMaybeName},  {"/new", Takes::kMaybeName},
    {"/fork", Takes::kMaybeName},  {"/switch", Takes::kName},     {"/list", Takes::kNothing},
    {"/close", Takes::kMaybeName}, {"/save", Takes::kFile},       {"/save!", Takes::kFile},
    {"/load", Takes::kFile},       {"/load!", Takes::kFile},      {"/cache", Takes::kMaybeFile},
    {"/stats", Takes::kNothing},   {"/quit", Takes::kNothing},    {"/exit", Takes::kNothing},
};

/// What is wrong with what stands behind a command; empty: nothing.
std::string refusal(const std::string& word, Takes takes, const std::string& argument) {
  switch (takes) {
    case Takes::kNothing:
      return argument.empty() ? ""
                              : word +
                                    " stands alone: nothing was done; begin with a space to send "
                                    "this as a message";
    case Takes::kFile:
      return argument.empty() ? word + " needs the name of a file" : "";
    case Takes::kName:
      return argument.empty() ? word + " needs a name" : "";
    case Takes::kMaybeCount:
      // More digits than any conversation has turns.
      return argument.find_first_not_of("0123456789") == std::string::npos && argument.size() < 7 &&
                     (argument.empty() || argument.find_first_not_of('0') != std::string::npos)
                 ? ""
                 : word +
                       " takes how many messages to take back: nothing was done; begin with a "
                       "space to send this as a message";
    case Takes::kMaybeFile:
    case Takes::kMaybeName:
      break;
  }
  return "";
}

ChatLine message(std::string text) { return {ChatLine::Kind::kMessage, std::move(text), {}, {}}; }

ChatLine wrong(std::string text) { return {ChatLine::Kind::kWrong, std::move(text), {}, {}}; }

}  // namespace

ChatLine parseChatLine(const std::string& typed) {
  const std::string text = typed.substr(0, typed.find_last_not_of(" \t\n") + 1);
  if (text.empty()) {
    return {};
  }
  if (text.find('\n') != std::string::npos) {
    return message(typed);
  }
  const size_t begin = text.find_first_not_of(" \t");
  if (text[begin] != '/') {
    return message(typed);
  }
  if (begin != 0) {
    return message(text.substr(begin));
  }
  const std::string word = text.substr(0, text.find_first_of(" \t"));
  if (word.size() > 2 && word[1] == '/' && word.find('/', 2) == std::string::npos) {
    return message(text.substr(1));
  }
  if (word.size() == 1 || word.find('/', 1) != std::string::npos) {
    return message(typed);
  }
  const size_t argument_at = text.find_first_not_of(" \t", word.size());
  const std::string argument = argument_at == std::string::npos ? "" : text.substr(argument_at);
  std::vector<std::string> names;
  for (const ChatCommand& command : kCommands) {
    if (word == command.name) {
      std::string why_not = refusal(word, command.takes, argument);
      if (!why_not.empty()) {
        return wrong(std::move(why_not));
      }
      return {ChatLine::Kind::kCommand, {}, word, withHome(argument)};
    }
    names.emplace_back(command.name);
  }
  const std::string near = nearest(word, names);
  return wrong("there is no command " + terminalSafe(word) + ": " +
               (near.empty() ? "/help lists them" : "did you mean " + near) +
               "; begin with a space to send this as a message");
}

const char* chatHelp() {
  return "/undo [N]      take back the last message and its reply, or the last N\n"
         "/reset         forget the conversation\n"
         "/mark NAME     name this place; /back NAME: return to it, /back: list them\n"
         "/new [NAME]    another conversation beside this one (--sessions N)\n"
         "/fork [NAME]   the same, going on from here\n"
         "/switch NAME   to another one, by name or number; /list: all of them\n"
         "/close [NAME]  forget this one, or that\n"
         "/save FILE     keep the conversation in a file; /save! FILE: over any other file\n"
         "/load FILE     go on with one that was kept\n"
         "/cache         draw what is remembered; /cache FILE.svg: as SVG\n"
         "/stats         memory, window and work so far\n"
         "/quit          leave (or Ctrl-D)\n"
         "Ctrl-C         stop the reply; at the prompt: drop the line\n";
}

}  // namespace cli
