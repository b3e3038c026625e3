// The model and its conversations. Calls return at once; state() shows their results.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "board.h"
#include "conversation.h"
#include "planner.h"

namespace desktop {

class Engine {
 public:
  /// `changed` is called on any thread when state() has changed. `keeps`: save all chats in the chat store.
  explicit Engine(std::function<void()> changed, bool keeps = false);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  AppState state() const { return board_.copy(); }

  /// Loads a model, or reloads it with other memory. Open conversations are carried over. If the plan does not
  /// fit or loading fails, nothing changes.
  void load(const PlanSettings& settings);
  /// After a lost device: all chats continue on it or on another device.
  void goOn();
  void newChat();
  void fork(int id);
  void closeChat(int id);
  void restore(const std::string& path);
  /// Opens stored chats, now or after a model is loaded.
  void reopen(const std::vector<KeptChat>& kept);
  void save(int id, const std::string& path);
  /// False: the chat is not idle, and the caller keeps the message.
  bool send(int id, const std::string& text, const ReplySettings& settings,
            bool even_if_cut = false, const std::vector<std::string>& pictures = {});
  /// The chat uses this LoRA adapter from here on; "": none. Loads the model again if it was loaded without it.
  void useAdapter(int id, const std::string& path);
  /// Shows an error.
  void fail(const std::string& line) { board_.fail(line); }
  void stop(int id);

  void dismissError();
  void dismissNotice();
  /// Waits until all jobs are done.
  void wait();

 private:
  using Chat = std::shared_ptr<Conversation>;
  struct Kept;

  /// The end of the program drops waiting jobs.
  void post(std::function<void()> job);
  // Jobs of worker_.
  void doLoad(const PlanSettings& settings);
  void doGoOn();
  void doUseAdapter(int id, const std::string& path);
  bool planFits(const PlanSettings& settings);
  bool loadModel(const PlanSettings& settings);
  std::vector<Kept> putAway();
  void takeBack(std::vector<Kept>* kept);
  /// Opens the chat's session. Returns the error, or "".
  using Open = std::function<std::string(Conversation&)>;
  Chat makeChat(const ChatState& begin, const Open& open);
  Chat makeEmptyChat(ChatPhase phase);
  std::string openNew(Conversation* chat);
  void doFork(int id);
  void doRestore(const std::string& path);
  void doReopen();
  void showMemory();
  bool hasRoom();

  Chat find(int id) const;
  std::vector<Chat> all() const;
  void drop(int id);
  static int onProgress(uint64_t done, uint64_t total, void* user);

  Board board_;
  LastError last_error_;
  oriel_model* model_ = nullptr;
  PlanSettings in_force_;
  std::atomic<bool> ending_{false};
  const bool keeps_;
  std::vector<KeptChat> to_reopen_;  ///< only jobs use it
  mutable std::mutex chats_mutex_;
  std::map<int, Chat> chats_;
  int next_id_ = 1;
  Worker worker_;  // destroyed first: its jobs use the rest
};

}  // namespace desktop
