// Automatically saved conversations: their messages in the user's data folder, readable by the user only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

/// Above this number the least recently used are removed.
constexpr size_t kMostSavedChats = 200;
constexpr uint64_t kMostSavedBytes = 32 << 20;

struct SavedChat {
  std::string file;   ///< its name in the folder
  int64_t when = 0;   ///< time of last use in ticks of the file system's clock, for sorting
  std::string model;  ///< as given by the user; empty: the default
  std::string system;
  std::string title;  ///< the beginning of the first message
  Json messages = Json::array();
};

/// The folder; empty: the user has no data folder, or ORIEL_NO_SAVE is set.
std::string savedChatsFolder();
/// The same for display, from "~/".
std::string shownChatsFolder();
/// True if no chat was saved before.
bool savesFirstChat();

/// Newest first. Skips other files.
std::vector<SavedChat> savedChats();

/// Writes the chat, with a new file name if it has none, and removes the oldest chats above the limit. Throws Failure.
void saveChat(SavedChat* chat);

/// The output of `oriel chat --list`.
std::string savedChatList(const std::vector<SavedChat>& chats);

/// The last turns of a continued conversation, shortened.
std::string lastTurns(const Json& messages, size_t columns);

}  // namespace cli
