// Groups a conversation's tokens into stretches for drawing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>

#include "board.h"
#include "planner.h"
#include "state.h"

namespace desktop {

/// Consecutive tokens that are drawn in one style.
struct CacheStretch {
  enum Kind { kSinks, kEvicted, kTurn } kind;
  uint64_t begin, end;
  size_t turn;  ///< number of the turn, for kTurn
};
std::vector<CacheStretch> stretchesOf(const CacheState& cache);

// One chat: a session of the model and its thread.

class Conversation {
 public:
  /// Once `ending` is set, only files are read and written. `keeps`: save the text in the chat store.
  Conversation(int id, Board* board, const std::atomic<bool>* ending, bool keeps)
      : id_(id), board_(board), ending_(ending), keeps_(keeps) {}
  /// Ends the replies and waits for the files.
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  int id() const { return id_; }

  // These return at once.
  /// Shows the message, then reads it. The reply streams into the board. Returns false and shows nothing if
  /// the chat is not idle. Without `even_if_cut`, refuses a message longer than the window (ChatState::refused).
  bool send(const Message& message, const ReplySettings& settings, bool even_if_cut);
  /// Uses a loaded LoRA adapter from here on; "": none. Reads the window again. Ignored unless the chat is idle.
  void useAdapter(const std::string& path);
  /// Refused while the chat is kMoving.
  void save(const std::string& path);
  /// Ends the running reply and waiting replies.
  void stop();

  // These wait for the session. The engine's thread calls them.
  void waitForJobs() { worker_.wait(); }
  /// Gives exclusive use of the session.
  std::unique_lock<std::mutex> hold() { return std::unique_lock<std::mutex>(use_); }
  /// Like hold(). Also ends the running reply, finishes files, and sets kMoving: the chat takes no new jobs until
  /// the board says kIdle.
  std::unique_lock<std::mutex> takeOver();
  // With the session held:
  bool isOpen() const { return session_ != nullptr; }
  oriel_status open(oriel_model* model);
  void close();
  /// Opens this chat as a fork of `source`, which must also be held.
  oriel_status openAsFork(Conversation* source);
  /// True if the session holds more than the shared prompt.
  bool holdsTokens() const { return cache().position > first_; }
  /// Earlier messages. The session reads them with the next message.
  void setUnread(std::vector<Message> messages) { unread_ = std::move(messages); }
  /// For open().
  void setAdapter(const std::string& path) { adapter_ = path; }
  const std::string& adapter() const { return adapter_; }
  bool isUnread() const { return !unread_.empty(); }
  /// The session as bytes; empty on failure (a lost device).
  std::vector<char> snapshot();
  /// Restores the chat from the snapshot as far as it fits, else reads the messages again. Returns a sentence
  /// about the kept tokens.
  std::string carryIn(const std::vector<char>& bytes, const std::vector<Message>& messages);
  /// Reopens the session after a lost device.
  oriel_status recover();
  /// Reads a file of `save`.
  oriel_status restore(const std::string& path, std::vector<Message>* messages, std::string* how);
  void showCache();
  std::string lastError() const;
  /// Saves the messages in the chat store.
  void keep();

 private:
  void reply(const Message& message, const ReplySettings& settings, bool even_if_cut);
  bool refuses(const Message& message);
  oriel_status addMessages(const std::vector<Message>& messages);
  void adapt(const std::string& path);
  oriel_status readUnread();
  void writeFile(const std::string& path);
  void finish(oriel_status status, const oriel_generation& result);
  oriel_status readAgain(const std::vector<Message>& messages);
  oriel_stats stats() const;
  CacheState cache() const;
  bool stops() const { return stopping_ || *ending_; }

  class Reading;
  static int onToken(const oriel_token_event* event, void* user);
  static int onReading(uint64_t done, uint64_t total, void* user);

  const int id_;
  Board* const board_;
  const std::atomic<bool>* const ending_;
  const bool keeps_;
  std::mutex use_;
  std::mutex pointer_;  ///< protects session_ against closing
  oriel_session* session_ = nullptr;
  const oriel_model* model_ = nullptr;
  std::vector<Message> unread_;
  std::string adapter_;  ///< file of the adapter in use
  std::string unseen_;   ///< why the pictures of the latest message cannot be read
  uint64_t first_ = 0;   ///< position of a new session
  std::atomic<bool> stopping_{false};
  double reply_began_s_ = 0;
  Worker worker_;  // destroyed first: its jobs use the rest
};

// Keeps chats between starts: their text in the store of `oriel chat`, and the list of open tabs.

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
