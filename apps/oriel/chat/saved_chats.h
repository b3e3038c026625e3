// Conversations that the program saves by itself: their text, among the user's data, for this user alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output.h"

namespace cli {

/// More are removed, those that were used longest ago first.
constexpr size_t kMostSavedChats = 200;
constexpr uint64_t kMostSavedBytes = 32 << 20;

struct SavedChat {
  std::string file;   ///< its name in the folder
  int64_t when = 0;   ///< last used: ticks of the file system's clock, for order
  std::string model;  ///< as it was named; empty: the default
  std::string system;
  std::string title;  ///< the beginning of the first message
  Json messages = Json::array();
};

/// Where they are; empty: the user has no place for data, or ORIEL_NO_SAVE is set.
std::string savedChatsFolder();
/// The same for people, from "~/".
std::string shownChatsFolder();
/// Nothing was saved yet.
bool savesFirstChat();

/// Newest first. What is no saved conversation is left out.
std::vector<SavedChat> savedChats();

/// Writes it, under a new name if it has none, and removes what is too much. Throws Failure.
void saveChat(SavedChat* chat);

/// What `oriel chat --list` prints.
std::string savedChatList(const std::vector<SavedChat>& chats);

/// The last turns of a conversation, shortened, for whoever goes on with it.
std::string lastTurns(const Json& messages, size_t columns);

}  // namespace cli
