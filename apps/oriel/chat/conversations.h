// Conversations of a chat: their messages, the saved ones, and several in one session.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/reply_parts.h"

namespace cli {

// The messages of a conversation, to rebuild it with another system message or in another model.

class Said {
 public:
  /// Adds a turn: the user's message and everything after it.
  void add(std::vector<Json> messages);
  /// Follows /undo, /mark and /back.
  void takeBack(size_t turns);
  void mark(const std::string& name) { marks_[name] = turns_.size(); }
  void goBack(const std::string& name);
  void clear() { *this = {}; }
  /// Call when a conversation was loaded from a file without messages.
  void loseTrack() {
    clear();
    whole_ = false;
  }
  /// Replaces everything by a list of messages.
  void take(const Json& messages);
  /// True if the whole conversation is known.
  bool whole() const { return whole_; }

  size_t turns() const { return turns_.size(); }
  const std::vector<Json>& turn(size_t number) const { return turns_[number]; }
  /// The user's message of the last turn, null: none; and the last reply to it, empty: none.
  Json lastMessage() const;
  std::string lastReply() const;
  /// All messages as one list.
  Json messages() const;

 private:
  std::vector<std::vector<Json>> turns_;
  std::map<std::string, size_t> marks_;
  bool whole_ = true;
};

/// With files of pictures before the text.
Json userMessage(const std::string& text, const std::vector<std::string>& images = {});
/// The text of a message, without its pictures.
std::string textOfMessage(const Json& message);
/// Includes its calls, in the OpenAI form.
Json replyMessage(const ReplyParts& parts);

// Automatically saved conversations: their messages in the user's data folder, readable by the user only.

/// Above this number the least recently used are removed.
constexpr size_t kMostSavedChats = 200;
constexpr uint64_t kMostSavedBytes = 32 << 20;

struct SavedChat {
  std::string file;   ///< its name in the folder
  int64_t when = 0;   ///< time of last use in ticks of the file system's clock, for sorting
  std::string model;  ///< as given by the user; empty: the default
  std::string system;
  std::string title;  ///< the beginning of the first message
  Json messages = Json::array();
};

/// The folder; empty: the user has no data folder, or ORIEL_NO_SAVE is set.
std::string savedChatsFolder();
/// The same for display, from "~/".
std::string shownChatsFolder();
/// True if no chat was saved before.
bool savesFirstChat();

/// Newest first. Skips other files.
std::vector<SavedChat> savedChats();

/// Writes the chat, with a new file name if it has none, and removes the oldest chats above the limit. Throws Failure.
void saveChat(SavedChat* chat);

/// The output of `oriel chat --list`.
std::string savedChatList(const std::vector<SavedChat>& chats);

/// The last turns of a continued conversation, shortened.
std::string lastTurns(const Json& messages, size_t columns);

// Saves conversations to files and continues them, with messages for the user.

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
