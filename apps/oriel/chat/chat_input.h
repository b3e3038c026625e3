// The input history of all chats: a private file with one JSON text per line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "terminal/line_editor.h"

namespace cli {

/// The file in the user's data folder; empty: no such folder.
std::string historyFile();

/// Oldest first; empty if the file does not exist.
std::vector<std::string> readHistory(const std::string& file);
/// Keeps the last 500 texts, also in `texts`. False: writing failed.
bool writeHistory(const std::string& file, std::vector<std::string>* texts);

// Tab completion of commands.

/// Completes commands and their arguments: settings, models, files. Messages are not completed.
Completion completeChatLine(const std::string& before);

// Writes a message in the user's editor.

/// Edits `*text` in $VISUAL, $EDITOR or vi. Returns the error; empty: success.
std::string editElsewhere(std::string* text);

// A line typed in a chat: a message or a command.

struct ChatCommand;

struct ChatLine {
  enum class Kind {
    kEmpty,
    kMessage,
    kCommand,
    kWrong,  ///< neither: `text` gives the reason, and the user may correct the input
  };
  Kind kind = Kind::kEmpty;
  std::string text;  ///< a message, or the reason
  const ChatCommand* command = nullptr;
  std::string argument;  ///< with "~/" resolved
};

/// A command is a single line that begins with a known command. A text of several lines is a message, and so is a path
/// ("/usr/bin is what?"). A leading space or second slash sends a line that looks like a command.
ChatLine parseChatLine(const std::string& typed);

/// Removes the absolute path of a picture from the end of a message, in the forms in which terminals write a dropped file:
/// '/a b.png', /a\ b.png, file:///a.png. Returns it; empty: the message does not end in one.
std::string takeDroppedPicture(std::string* message);

// The source of a chat's messages: a terminal with or without a line editor, or a pipe.

class ChatInput {
 public:
  enum class Result {
    kText,
    kEnd,
    kInterrupted,  ///< Ctrl-C
    kDropped,      ///< Ctrl-C, which cleared the typed text
  };

  /// Takes the terminal, if there is one, before loading, so that text typed meanwhile appears at the prompt.
  ChatInput();

  /// True for a terminal, false for a pipe or a file.
  bool interactive() const { return interactive_; }
  /// True if lines are edited here, not by the terminal.
  bool edits() const { return editor_ != nullptr; }

  /// Applies from the next prompt; no control characters.
  void setPrompt(const std::string& prompt);
  const std::string& prompt() const { return prompt_; }
  Result next(bool shows_prompt, std::string* text);
  /// Loads the history of earlier chats and appends new lines to that file.
  void keepHistory(const std::string& file);
  /// Puts the text at the next prompt for editing. False: not possible; the user must type it again.
  bool giveBack(const std::string& text);
  /// Opens the text in the user's editor, then at the next prompt. Without line editing it is sent unchanged.
  void edit(std::string text);
  /// Call during and after a reply: collects typed text for the next prompt. If the reply was stopped, the text is shown
  /// there instead of being sent.
  void takeTypedAhead();
  void replyEnded(bool stopped);

 private:
  bool interactive_;
  std::string prompt_ = "> ";
  std::unique_ptr<LineEditor> editor_;
  LineReader reader_;
  std::string waiting_;  ///< comes next
};

}  // namespace cli
