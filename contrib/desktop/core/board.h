// The reason of a failed call, from the library's log callback.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include <oriel/advanced.h>
#include <oriel/oriel.h>
#include <nlohmann/json.hpp>

#include "state.h"

namespace desktop {

class LastError {
 public:
  /// Must live as long as the model that is loaded with these options.
  void listen(oriel_options* options);
  /// "WHAT HAPPENED: WHAT TO DO".
  std::string text(oriel_status status) const;
  void clear();

 private:
  static void onLog(oriel_log_level level, const char* message, void* user);

  mutable std::mutex mutex_;
  std::string line_;
};

// The library's descriptions of its objects.

using Json = nlohmann::json;

/// The JSON of a describe call (docs/reference/describe.md); null on failure.
template <typename Object>
Json described(const Object* object, oriel_status (*call)(const Object*, char*, size_t, size_t*)) {
  std::string text(1 << 14, '\0');
  size_t needed = 0;
  oriel_status status = call(object, text.data(), text.size(), &needed);
  if (status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    text.resize(needed);
    status = call(object, text.data(), text.size(), &needed);
  }
  return status == ORIEL_OK ? Json::parse(text.c_str()) : Json();
}

// The shared state: all threads write it, the window reads it.

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
