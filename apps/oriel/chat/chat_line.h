// A line typed in a chat: a message or a command.
#pragma once

#include <string>

namespace cli {

struct ChatCommand;

struct ChatLine {
  enum class Kind {
    kEmpty,
    kMessage,
    kCommand,
    kWrong,  ///< neither: `text` gives the reason, and the user may correct the input
  };
  Kind kind = Kind::kEmpty;
  std::string text;  ///< a message, or the reason
  const ChatCommand* command = nullptr;
  std::string argument;  ///< with "~/" resolved
};

/// A command is a single line that begins with a known command. A text of several lines is a message, and so is a path
/// ("/usr/bin is what?"). A leading space or second slash sends a line that looks like a command.
ChatLine parseChatLine(const std::string& typed);

/// Removes the absolute path of a picture from the end of a message, in the forms in which terminals write a dropped file:
/// '/a b.png', /a\ b.png, file:///a.png. Returns it; empty: the message does not end in one.
std::string takeDroppedPicture(std::string* message);

}  // namespace cli
