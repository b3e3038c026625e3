// Keeps chats between starts: their text in the store of `oriel chat`, and the list of open tabs.
#pragma once

#include <string>
#include <vector>

#include "state.h"

namespace desktop {

/// A chat in the store.
struct KeptChat {
  std::string file;  ///< its name there
  std::string title;
  std::vector<Message> messages;
};

/// Newest first. Empty if chats are not kept.
std::vector<KeptChat> keptChats();
/// True before the first chat is saved.
bool keepsFirstChat();
/// The folder for messages, from "~/"; "" if chats are not kept.
std::string keptChatsFolder();
/// Writes `chat.file`, or a new file. Returns its name; on failure "" and a line in *error.
std::string keepChat(const ChatState& chat, const PlanSettings& settings, std::string* error);

/// The tabs to restore at the next start.
struct WindowMemory {
  std::vector<std::string> open;  ///< file names of the tabs' chats
  std::string front;              ///< file name of the chat in front
};

WindowMemory rememberedWindow();
/// Ignores failures; the next change tries again.
void rememberWindow(const WindowMemory& memory);

}  // namespace desktop
