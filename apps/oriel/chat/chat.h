// A chat at a terminal: its settings and commands, drawings of the cache, and the loop of messages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <oriel/advanced.h>

#include "chat/chat_input.h"
#include "chat/conversations.h"
#include "measure/divergence.h"
#include "model_handle.h"
#include "options.h"
#include "output.h"
#include "reply/local_tools.h"
#include "reply/reply.h"
#include "reply/reply_options.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"

namespace cli {

// The settings of /set.

struct ChatOptions;

struct ChatSetting {
  /// The effect of a change.
  enum class Takes {
    kNext,    ///< the next reply
    kFormat,  ///< conversion of messages to text
    kModel    ///< the plan: reloads the model
  };
  const char* name;
  const char* option;  ///< the library's name
  Takes takes;
};

const std::vector<ChatSetting>& chatSettings();
/// Null if unknown.
const ChatSetting* chatSetting(const std::string& name);

/// The allowed values and the current one, as text.
std::string allowedFor(const ChatSetting& setting);
std::string shown(const ChatSetting& setting, const ChatOptions& options);
/// The fault in the text; empty: it was set.
std::string setChat(const ChatSetting& setting, const std::string& text, ChatOptions* options);

// The table of chat commands: names, arguments and functions.

class Chat;

enum class Takes {
  kNothing,
  kMaybeFile,
  kFile,
  kMaybeName,
  kName,
  kMaybeCount,
  kMaybeText,
  kModel,
  kMaybeSetting
};

struct ChatCommand {
  const char* name;
  Takes takes;
  const char* arguments;  ///< as shown in the help
  const char* help;       ///< empty: covered by another help line
  /// Throws Failure to end the chat. Null: leaves it.
  void (Chat::*run)(const ChatCommand& command, const std::string& argument);
};

/// In help order.
const std::vector<ChatCommand>& chatCommands();

/// What /help prints.
std::string chatHelp();

// Drawings of a session's cache: kept, visible and evicted tokens, and formats.

struct CacheView {
  uint64_t position = 0;
  uint64_t first_visible = 0;
  uint64_t first_stored = 0;
  uint64_t sinks_used = 0;
  uint64_t pinned_tokens = 0;  ///< of the sinks
  uint64_t capacity = 0;       ///< sinks and window
  uint64_t kv_bytes = 0;
  bool of_several = false;      ///< kv_bytes covers all conversations
  uint64_t sliding_layers = 0;  ///< with a short window of their own
  uint64_t sliding_seen = 0;    ///< tokens in these layers that the newest token can see
  std::vector<uint64_t> turns;  ///< first tokens of the user's turns, ascending
  Json layers;                  ///< from oriel_model_describe
};

CacheView cacheViewOf(const Model& model, const Session& session, uint32_t pinned_tokens);

/// A few lines of block characters, at most `columns` wide.
std::string cacheText(const CacheView& cache, unsigned columns);
/// A standalone SVG document.
std::string cacheSvg(const CacheView& cache);

// A conversation at a terminal or through a pipe: messages, replies, commands.

struct ChatOptions {
  CommonOptions common;
  std::vector<LocalTool> allowed_tools;
  std::string system;
  std::string load;             ///< a conversation to continue; empty: none
  int64_t continue_number = 0;  ///< number in --list; 0: a new one
  bool list = false;
  bool no_save = false;
  bool keeps_history = false;
  SavedChat continued;  ///< an automatically saved one; without messages: none
};

constexpr uint64_t kReplyTokens = 2048;

/// Tokens before the first question, which always stay in the cache: the system message, or the chat format's default if
/// there is memory for it. 0: none. Also fixes the default memory, since the free memory may shrink later. Throws
/// Failure for a model without a chat format.
uint32_t pinnedTokens(ChatOptions* options);
/// Several conversations share one copy of the system message.
void shareSystem(ChatOptions* options, uint32_t pinned_tokens);

class Chat {
 public:
  Chat(const ChatOptions& options, uint32_t pinned_tokens);

  /// Runs until the input ends; returns the exit code.
  int run();

 private:
  friend const std::vector<ChatCommand>& chatCommands();

  Session& session() const { return conversations_.session(); }
  ConversationStart beginning() const;

  template <typename Act>
  bool onSomeDevice(const Act& act);
  /// Prints within the terminal's width.
  static void tell(std::string_view text) { tellText(text); }
  void greet() const;
  std::string memoryText() const;
  /// False: leave.
  bool obey(const ChatCommand& command, const std::string& argument);

  // Commands.
  void tellHelp(const ChatCommand&, const std::string&);
  void reset(const ChatCommand&, const std::string&);
  void retry(const ChatCommand&, const std::string&);
  void takeBack(const ChatCommand&, const std::string& turns);
  void nameOrGoBack(const ChatCommand& command, const std::string& name);
  void change(const ChatCommand& command, const std::string& name);
  void saveOrLoad(const ChatCommand& command, const std::string& path);
  void setOrShow(const ChatCommand&, const std::string& argument);
  void setSystem(const ChatCommand&, const std::string& text);
  void setModel(const ChatCommand&, const std::string& name);
  void tellPlan(const ChatCommand&, const std::string& memory);
  void draw(const ChatCommand&, const std::string& path);
  void tellStats(const ChatCommand&, const std::string&);
  void copyReply(const ChatCommand&, const std::string&);
  void readFile(const ChatCommand&, const std::string& path);
  void addImage(const ChatCommand&, const std::string& path);
  void editMessage(const ChatCommand&, const std::string&);

  bool load(bool watched);
  void goOnWithSaved();
  void tellLastTurns() const;
  /// Saves the active conversation if it has changed.
  void save();
  /// Reads lines between """ and """; false: the input ended first.
  /// A picture of the next message. False: it cannot be read.
  bool attach(const std::string& path);
  bool takeDropped(std::string* text);
  bool takeBlock(std::string* text, bool watched);
  /// Records the known part of the text of a conversation from a file.
  void trackLoaded(bool done);
  void showStats() const;
  bool undo(uint32_t turns);
  /// Goes back to a mark, or by `turns` turns; Ctrl-C stops it.
  oriel_status tryBack(const char* mark, uint32_t turns) const;
  /// The same, with a message on failure. `to` is the target position.
  oriel_status goingBack(uint64_t to, const char* mark, uint32_t turns) const;
  void mark(const std::string& name);
  void goBack(const std::string& name);

  /// The kind of change for all conversations.
  enum class Change { kFormat, kBeginning, kModel };
  /// Switches all conversations to other options. Prints `done` with the new options, and the outcome. False: nothing
  /// changed, and the reason was printed.
  bool goOnWithOptions(ChatOptions next, Change change, const std::function<std::string()>& done);
  std::string openedText(const Conversations::Opened& opened, double seconds) const;

  oriel_status addUser(const Json& message) const;
  bool turn(const Json& message);
  bool answer(const TurnsSeen& before);
  bool calls(const Reply& reply) const;
  bool giveResults(const std::vector<ToolCall>& calls);
  Reply replyNow(const TurnsSeen& before, bool behind_results);
  void tellWhatIsLost(uint64_t begin) const;
  void showSpeed(const Reply& reply, const oriel_stats& stats, const TurnsSeen& before) const;

  ChatOptions options_;
  ChatInput input_;
  const bool interactive_ = input_.interactive();
  uint32_t pinned_tokens_;
  Model model_;
  Conversations conversations_;
  ToolRunner tools_;
  std::vector<Json> turn_;           ///< messages of the current turn
  uint32_t retries_ = 0;             ///< retries of the last message
  std::string read_;                 ///< files to attach to the next message
  std::vector<std::string> images_;  ///< pictures of the next message
  bool saves_;                       ///< conversations are saved automatically
};

/// Runs it. If the device is lost meanwhile, runs it again from the start on the device that replaces it.
template <typename Act>
bool Chat::onSomeDevice(const Act& act) {
  const uint64_t begin = session().stats().position;
  try {
    return act();
  } catch (const Failure&) {
    if (!deviceLost(session())) {
      throw;
    }
  }
  print(interactive_ ? "\n" : "");
  conversations_.goOn(begin);
  return act();
}

}  // namespace cli
