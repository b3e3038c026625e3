// Keeps chats between starts: their text in the store of `oriel chat`, and the list of open tabs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "state.h"

namespace desktop {

/// A chat in the store.
struct KeptChat {
  std::string file;  ///< its name there
  std::string title;
  std::vector<Message> messages;
  std::string adapter = {};  ///< file of its LoRA adapter; "": none
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
  std::vector<std::string> open;                ///< file names of the tabs' chats
  std::string front;                            ///< file name of the chat in front
  std::map<std::string, std::string> adapters;  ///< their LoRA adapters, by file name
  std::string model;                            ///< the model that these belong to
  std::string mmproj;                           ///< its encoder of pictures
};
inline bool operator==(const WindowMemory& a, const WindowMemory& b) {
  return a.open == b.open && a.front == b.front && a.adapters == b.adapters && a.model == b.model &&
         a.mmproj == b.mmproj;
}

WindowMemory rememberedWindow();
/// Ignores failures; the next change tries again.
void rememberWindow(const WindowMemory& memory);

}  // namespace desktop
