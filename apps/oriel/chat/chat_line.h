// What somebody typed in a chat: a message, or a command.
#pragma once

#include <string>

namespace cli {

struct ChatCommand;

struct ChatLine {
  enum class Kind {
    kEmpty,
    kMessage,
    kCommand,
    kWrong,  ///< neither: `text` says why, and what was typed is for the person to mend
  };
  Kind kind = Kind::kEmpty;
  std::string text;  ///< of a message, or what is wrong
  const ChatCommand* command = nullptr;
  std::string argument;  ///< with "~/" resolved
};

/// Commands are lines of their own that begin with a known word. A text of several lines is a message, and so is a
/// path ("/usr/bin is what?"). A space or a second slash before the first sends what looks like a command.
ChatLine parseChatLine(const std::string& typed);

}  // namespace cli
