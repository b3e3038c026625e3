// The conversations of a chat: each a session with a number and perhaps a name; one of them goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat/said.h"
#include "model_handle.h"
#include "options.h"

namespace cli {

struct Conversation {
  uint32_t number = 0;  ///< from 1, the smallest that is free; it stays
  std::string name;     ///< empty: it has none
  std::unique_ptr<Session> session;
  Said said;
  std::vector<char> kept;  ///< as bytes, while the session is closed
  std::string file;        ///< in the folder of saved chats; empty: it is not there yet
  Json saved;              ///< the messages that are there

  /// As people call it: its name, else its number.
  std::string title() const { return name.empty() ? std::to_string(number) : name; }
};

/// How every conversation of a chat begins.
struct ConversationStart {
  CommonOptions common;
  std::string system;
};

class Conversations {
 public:
  /// With one that is active. Of several the system message is a prefix, held once, if `start` has room for it
  /// (common.prefix_tokens).
  Conversations(const ConversationStart& start, Model* model);

  Session& session() const { return *active().session; }
  Conversation& active() const { return *list_[active_]; }
  const std::vector<std::unique_ptr<Conversation>>& list() const { return list_; }
  /// There is memory for so many.
  uint32_t capacity() const { return start_.common.load.count("sessions", 1); }

  /// These say why not; empty: done. What is made is active then. `name` may be empty.
  std::string begin(const std::string& name);
  std::string fork(const std::string& name);
  std::string choose(const std::string& title);
  /// Empty: the active one.
  std::string close(const std::string& title);

  /// The active one begins anew.
  void reset();
  /// Its messages are read again, from the beginning and without the last `left_out` turns. As Session::cancellable.
  oriel_status readAgain(size_t left_out);

  /// All of them go on behind another beginning, or in another model: saved, closed, and opened again. Restored where
  /// they can be, if `restores`; else what was said is read again, as much as there is room for.
  void keepAll();
  void closeAll();
  struct Opened {
    size_t turns_read = 0;
    size_t turns_left_out = 0;  ///< for lack of room
    uint64_t tokens = 0;
    bool cancelled = false;
    std::string refused;  ///< why the chat format cannot take what was said; empty: it could
  };
  Opened openAll(const ConversationStart& start, bool restores);
  /// The device was lost: all of them go on, on that or another one, the active one with its first `end` tokens. Throws
  /// Failure where none can do it.
  void goOn(uint64_t end);

 private:
  bool shares() const { return start_.common.load.number("prefix_tokens") != 0; }
  /// Where it does not begin behind it.
  void addSystem(const Session& session) const;
  /// The first makes the prefix, if there is to be one.
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

/// What /list prints.
std::string conversationList(const Conversations& conversations);

}  // namespace cli
