// Saves conversations to files and continues them, with messages for the user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/said.h"
#include "model_handle.h"
#include "options.h"

namespace cli {

/// The file's own description (oriel_snapshot_describe); null if unreadable.
Json inspectKept(const std::string& path);

/// `over`: overwrites any file. Returns the message to print.
std::string keepIn(const Session& session, const std::string& path, bool over);

struct Taken {
  bool done = false;
  bool cancelled = false;
  bool lost = false;  ///< less is visible than before
  std::string text;   ///< what to tell
};
/// Continues the conversation in a file. `reads`: if the snapshot does not fit, reads its messages again; Ctrl-C stops
/// that. Throws Failure for errors not caused by the file.
Taken goOnWith(const Session& session, const std::string& path, bool reads);

// The conversations of a chat. Each is a session with a number and optionally a name; one is active.

struct Conversation {
  uint32_t number = 0;  ///< from 1, the smallest free number; never changes
  std::string name;     ///< empty: none
  std::unique_ptr<Session> session;
  Said said;
  std::vector<char> kept;  ///< a snapshot, while the session is closed
  std::string file;        ///< in the folder of saved chats; empty: not saved yet
  Json saved;              ///< the messages saved there

  /// The displayed name: its name, or else its number.
  std::string title() const { return name.empty() ? std::to_string(number) : name; }
};

/// The common start of a chat's conversations.
struct ConversationStart {
  CommonOptions common;
  std::string system;
};

class Conversations {
 public:
  /// Creates one active conversation. If several fit, the system message is a shared prefix, provided `start` reserves
  /// room for it (common.prefix_tokens).
  Conversations(const ConversationStart& start, Model* model);

  Session& session() const { return *active().session; }
  Conversation& active() const { return *list_[active_]; }
  const std::vector<std::unique_ptr<Conversation>>& list() const { return list_; }
  /// The number of conversations that fit in memory.
  uint32_t capacity() const { return start_.common.load.count("sessions", 1); }

  /// Returns the error; empty: done, and the new conversation is active. `name` may be empty.
  std::string begin(const std::string& name);
  std::string fork(const std::string& name);
  std::string choose(const std::string& title);
  /// Empty: the active one.
  std::string close(const std::string& title);

  /// Restarts the active conversation.
  void reset();
  /// Reads its messages again from the start, without the last `left_out` turns. Cancellable like Session::cancellable.
  oriel_status readAgain(size_t left_out);

  /// Moves all conversations to another system message or model: saves, closes and reopens them. If `restores`, uses the
  /// snapshots where they fit; otherwise reads the messages again as far as they fit.
  void keepAll();
  void closeAll();
  struct Opened {
    size_t turns_read = 0;
    size_t turns_left_out = 0;  ///< did not fit
    uint64_t tokens = 0;
    bool cancelled = false;
    std::string refused;  ///< why the chat format refuses the messages; empty: it does not
  };
  Opened openAll(const ConversationStart& start, bool restores);
  /// After a lost device: continues all conversations on the same or another device. The active conversation keeps its
  /// first `end` tokens. Throws Failure if no device works.
  void goOn(uint64_t end);

 private:
  bool shares() const { return start_.common.load.number("prefix_tokens") != 0; }
  /// For conversations without the shared prefix.
  void addSystem(const Session& session) const;
  /// The first session makes the shared prefix, if there is one.
  std::unique_ptr<Session> makeFirst() const;
  std::unique_ptr<Session> make() const;
  bool restored(Conversation* conversation) const;
  void readSaid(Conversation* conversation, Opened* opened) const;
  size_t firstTurnWithRoom(const Conversation& conversation) const;
  Conversation* find(const std::string& title) const;
  std::string refusal(const std::string& name) const;
  void add(const std::string& name, std::unique_ptr<Session> session);

  ConversationStart start_;
  Model& model_;
  std::vector<std::unique_ptr<Conversation>> list_;  ///< by number
  size_t active_ = 0;
};

/// The output of /list.
std::string conversationList(const Conversations& conversations);

}  // namespace cli
