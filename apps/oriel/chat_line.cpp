#include "chat_line.h"

#include <vector>

#include "nearest.h"
#include "system.h"
#include "terminal.h"

namespace cli {
namespace {

enum class Takes { kNothing, kMaybeFile, kFile };

struct ChatCommand {
  const char* name;
  Takes takes;
};

constexpr ChatCommand kCommands[] = {
    {"/help", Takes::kNothing},    {"/undo", Takes::kNothing},  {"/reset", Takes::kNothing},
    {"/save", Takes::kFile},       {"/save!", Takes::kFile},    {"/load", Takes::kFile},
    {"/cache", Takes::kMaybeFile}, {"/stats", Takes::kNothing}, {"/quit", Takes::kNothing},
    {"/exit", Takes::kNothing},
};

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
      if (command.takes == Takes::kNothing && !argument.empty()) {
        return wrong(
            word + " stands alone: nothing was done; begin with a space to send this as a message");
      }
      if (command.takes == Takes::kFile && argument.empty()) {
        return wrong(word + " needs the name of a file");
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
  return "/undo       take back the last message and its reply\n"
         "/reset      forget the conversation\n"
         "/save FILE  keep the conversation in a file; /save! FILE: over any other file\n"
         "/load FILE  go on with one that was kept\n"
         "/cache      draw what is remembered; /cache FILE.svg: as SVG\n"
         "/stats      memory, window and work so far\n"
         "/quit       leave (or Ctrl-D)\n"
         "Ctrl-C      stop the reply; at the prompt: drop the line\n";
}

}  // namespace cli
