// One chat: a session of the model and its thread.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <oriel/advanced.h>

#include "board.h"
#include "worker.h"

namespace desktop {

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
  bool send(const std::string& text, const ReplySettings& settings, bool even_if_cut);
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
  void reply(const std::string& text, const ReplySettings& settings, bool even_if_cut);
  bool refuses(const std::string& text);
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
  uint64_t first_ = 0;  ///< position of a new session
  std::atomic<bool> stopping_{false};
  double reply_began_s_ = 0;
  Worker worker_;  // destroyed first: its jobs use the rest
};

}  // namespace desktop
