// The table of chat commands: names, arguments and functions.
#pragma once

#include <string>
#include <vector>

namespace cli {

class Chat;

enum class Takes {
  kNothing,
  kMaybeFile,
  kFile,
  kMaybeName,
  kName,
  kMaybeCount,
  kMaybeText,
  kModel,
  kMaybeSetting
};

struct ChatCommand {
  const char* name;
  Takes takes;
  const char* arguments;  ///< as shown in the help
  const char* help;       ///< empty: covered by another help line
  /// Throws Failure to end the chat. Null: leaves it.
  void (Chat::*run)(const ChatCommand& command, const std::string& argument);
};

/// In help order.
const std::vector<ChatCommand>& chatCommands();

/// What /help prints.
std::string chatHelp();

}  // namespace cli
