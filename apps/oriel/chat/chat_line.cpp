#include "chat/chat_line.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "chat/chat_commands.h"
#include "measure/nearest.h"
#include "system.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr char kAsText[] = " (Start with a space to send it as text.)";

/// The fault in a command's argument; empty: none.
std::string refusal(const std::string& word, Takes takes, const std::string& argument) {
  switch (takes) {
    case Takes::kNothing:
      return argument.empty() ? "" : word + " takes no argument" + kAsText;
    case Takes::kFile:
      return argument.empty() ? word + " needs the name of a file" : "";
    case Takes::kName:
      return argument.empty() ? word + " needs a name" : "";
    case Takes::kMaybeCount:
      // Limits the digits to more than any number of turns.
      return argument.find_first_not_of("0123456789") == std::string::npos && argument.size() < 7 &&
                     (argument.empty() || argument.find_first_not_of('0') != std::string::npos)
                 ? ""
                 : word + " takes a number of messages" + kAsText;
    case Takes::kModel:
      return argument.empty() ? word + " needs the name of a model, or a GGUF file" : "";
    case Takes::kMaybeFile:
    case Takes::kMaybeName:
    case Takes::kMaybeText:
    case Takes::kMaybeSetting:
      break;
  }
  return "";
}

ChatLine message(std::string text) {
  return {ChatLine::Kind::kMessage, std::move(text), nullptr, {}};
}

ChatLine wrong(std::string text) { return {ChatLine::Kind::kWrong, std::move(text), nullptr, {}}; }

}  // namespace

std::string takeDroppedPicture(std::string* message) {
  const std::string& text = *message;
  const size_t end = text.find_last_not_of(" \t\n") + 1;
  size_t begin = end;
  std::string path;
  if (end > 1 && (text[end - 1] == '\'' || text[end - 1] == '"')) {
    begin = text.rfind(text[end - 1], end - 2);
    path = begin == std::string::npos ? "" : text.substr(begin + 1, end - 2 - begin);
  } else {
    const std::string space = " \t\n";
    while (begin != 0 && (space.find(text[begin - 1]) == std::string::npos ||
                          (begin > 1 && text[begin - 2] == '\\'))) {
      --begin;
    }
    for (size_t i = begin; i < end; ++i) {
      i += text[i] == '\\' && i + 1 < end ? 1 : 0;
      path += text[i];
    }
  }
  path.erase(0, path.compare(0, 7, "file://") == 0 ? 7 : 0);
  const auto file = std::filesystem::u8path(withHome(path));
  const std::string ending = file.extension().u8string();
  const bool is_picture = ending == ".png" || ending == ".jpg" || ending == ".jpeg" ||
                          ending == ".PNG" || ending == ".JPG";
  std::error_code error;
  if (!is_picture || !file.is_absolute() || !std::filesystem::exists(file, error)) {
    return "";
  }
  message->resize(begin == 0 ? 0 : message->find_last_not_of(" \t\n", begin - 1) + 1);
  return file.u8string();
}

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
  for (const ChatCommand& command : chatCommands()) {
    if (word == command.name) {
      std::string why_not = refusal(word, command.takes, argument);
      if (!why_not.empty()) {
        return wrong(std::move(why_not));
      }
      return {ChatLine::Kind::kCommand, {}, &command, withHome(argument)};
    }
    names.emplace_back(command.name);
  }
  const std::string near = nearest(word, names);
  return wrong("No command " + oneLine(word) + ". " +
               (near.empty() ? "/help lists them." : "Did you mean " + near + "?") + kAsText);
}

}  // namespace cli
