// One chat: a session of the model, and a thread that makes its calls.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include <oriel/sessions.h>

#include "board.h"
#include "worker.h"

namespace desktop {

class Conversation {
 public:
  Conversation(int id, Board* board) : id_(id), board_(board) {}
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  int id() const { return id_; }

  // Return at once.
  /// The message is shown and then read; the reply streams into the board.
  void send(const std::string& text, const ReplySettings& settings);
  void save(const std::string& path);
  /// Ends the reply that runs, and those that wait.
  void stop();

  // Wait for the session; from the engine's thread.
  /// Nobody else uses the session while this is held.
  void waitForJobs() { worker_.wait(); }
  std::unique_lock<std::mutex> hold() { return std::unique_lock<std::mutex>(use_); }
  // With the session held:
  bool isOpen() const { return session_ != nullptr; }
  oriel_status open(oriel_model* model);
  void close();
  /// Opens this one as a second session that goes on from where `source` is. `source` is held, too.
  oriel_status openAsFork(Conversation* source);
  /// As bytes; empty where that is not possible (a lost device) or there is nothing to keep.
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

 private:
  void reply(const std::string& text, const ReplySettings& settings);
  void writeFile(const std::string& path);
  void finish(oriel_status status, const oriel_generation& result);
  oriel_status readAgain(const std::vector<Message>& messages);
  CacheState cache() const;

  class Reading;
  static int onToken(const oriel_token_event* event, void* user);
  static int onReading(uint64_t done, uint64_t total, void* user);

  const int id_;
  Board* const board_;
  std::mutex use_;
  std::mutex pointer_;  ///< session_ is there as long as this is held
  oriel_session* session_ = nullptr;
  std::atomic<bool> stopping_{false};
  double reply_began_s_ = 0;
  Worker worker_;  // ends before what its jobs use
};

}  // namespace desktop
