// One chat: a session of the model, and a thread that makes its calls.
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

  // Return at once.
  /// The message is shown and then read; the reply streams into the board. False, and nothing is shown: the chat is not
  /// idle. Without `even_if_cut` a message longer than the window is refused (ChatState::refused).
  bool send(const std::string& text, const ReplySettings& settings, bool even_if_cut);
  /// Refused while the chat is kMoving.
  void save(const std::string& path);
  /// Ends the reply that runs, and those that wait.
  void stop();

  // Wait for the session; from the engine's thread.
  /// Nobody else uses the session while this is held.
  void waitForJobs() { worker_.wait(); }
  std::unique_lock<std::mutex> hold() { return std::unique_lock<std::mutex>(use_); }
  /// As hold(), and kMoving until the board says kIdle again: the reply that runs is ended, files are written, and no more
  /// is taken on.
  std::unique_lock<std::mutex> takeOver();
  // With the session held:
  bool isOpen() const { return session_ != nullptr; }
  oriel_status open(oriel_model* model);
  void close();
  /// Opens this one as a second session that goes on from where `source` is. `source` is held, too.
  oriel_status openAsFork(Conversation* source);
  /// Whether it holds more than every session begins with.
  bool holdsTokens() const { return cache().position > first_; }
  /// Earlier messages. The session reads them with the next message.
  void setUnread(std::vector<Message> messages) { unread_ = std::move(messages); }
  bool isUnread() const { return !unread_.empty(); }
  /// As bytes; empty where that is not possible (a lost device).
  std::vector<char> snapshot();
  /// What was said becomes the session's: from the bytes as far as they fit, else read again from the texts. Says in a
  /// sentence what was kept.
  std::string carryIn(const std::vector<char>& bytes, const std::vector<Message>& messages);
  /// After its device was lost.
  oriel_status recover();
  /// From a file of `save`.
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
  std::mutex pointer_;  ///< session_ is there as long as this is held
  oriel_session* session_ = nullptr;
  const oriel_model* model_ = nullptr;
  std::vector<Message> unread_;
  uint64_t first_ = 0;  ///< position of a session to which nothing was said
  std::atomic<bool> stopping_{false};
  double reply_began_s_ = 0;
  Worker worker_;  // ends before what its jobs use
};

}  // namespace desktop
