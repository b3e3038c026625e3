// The shared state: all threads write it, the window reads it.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "state.h"

namespace desktop {

class Board {
 public:
  /// The thread that made a change calls `changed`, without a lock.
  explicit Board(std::function<void()> changed) : changed_(std::move(changed)) {}

  template <typename Edit>
  void edit(const Edit& edit) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      edit(state_);
      state_.version++;
    }
    changed_();
  }
  /// Changes one chat. Does nothing if it is closed.
  template <typename Edit>
  void editChat(int id, const Edit& edit_chat) {
    edit([&](AppState& state) {
      for (ChatState& chat : state.chats) {
        if (chat.id == id) {
          edit_chat(chat);
        }
      }
    });
  }
  AppState copy() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }
  /// Shows an error to the user.
  void fail(const std::string& line) {
    edit([&](AppState& state) { state.error = line; });
  }

 private:
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  AppState state_;
};

}  // namespace desktop
