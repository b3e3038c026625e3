// Chats that outlive the window: their texts in the store of `oriel chat`, and which of them were open.
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

/// Newest first. Empty where nothing is kept.
std::vector<KeptChat> keptChats();
/// Nothing was kept so far.
bool keepsFirstChat();
/// The folder, as people read it; "" where there is none.
std::string keptChatsFolder();
/// Writes the chat under `chat.file`, or a new name. Returns the name; "" and *error in words if that fails.
std::string keepChat(const ChatState& chat, const PlanSettings& settings, std::string* error);

/// What the window looked like.
struct WindowMemory {
  std::vector<std::string> open;  ///< files of the chats in the tabs
  std::string front;              ///< one of them
};

WindowMemory rememberedWindow();
/// A failure is silent: the next change tries again.
void rememberWindow(const WindowMemory& memory);

}  // namespace desktop
