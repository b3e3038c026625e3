// The commands of a chat: which there are, what they take, what they do.
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
  const char* arguments;  ///< as help shows them
  const char* help;       ///< empty: another line of the help speaks for it
  /// Throws Failure for what ends the chat. Null: it leaves.
  void (Chat::*run)(const ChatCommand& command, const std::string& argument);
};

/// In the order of the help.
const std::vector<ChatCommand>& chatCommands();

/// What /help prints.
std::string chatHelp();

}  // namespace cli
