// The one copy of the state that all threads write and the window reads.
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "state.h"

namespace desktop {

class Board {
 public:
  /// `changed` is called on the thread that changed something, without a lock held.
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
  /// Of one chat; nothing happens if it is gone.
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
  /// Says what went wrong where the person sees it.
  void fail(const std::string& line) {
    edit([&](AppState& state) { state.error = line; });
  }

 private:
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  AppState state_;
};

}  // namespace desktop
