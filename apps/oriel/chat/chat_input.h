// The source of a chat's messages: a terminal with or without a line editor, or a pipe.
#pragma once

#include <memory>
#include <string>

#include "terminal/line_editor.h"
#include "terminal/line_reader.h"

namespace cli {

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
