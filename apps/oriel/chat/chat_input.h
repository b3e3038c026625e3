// Where a chat's messages come from: a terminal with a line editor, one without, or a pipe.
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
    kDropped,      ///< Ctrl-C, which took back what was typed
  };

  /// Takes the terminal, if there is one, before anything is loaded: what is typed meanwhile stands at the prompt.
  ChatInput();

  /// Somebody types; else the lines of a pipe or a file.
  bool interactive() const { return interactive_; }
  /// Lines are edited here, and not by the terminal.
  bool edits() const { return editor_ != nullptr; }

  /// From the next one on; no control characters.
  void setPrompt(const std::string& prompt);
  const std::string& prompt() const { return prompt_; }
  Result next(bool shows_prompt, std::string* text);
  /// What was typed in earlier chats; what is typed from now on is kept in that file, too.
  void keepHistory(const std::string& file);
  /// To be mended at the next prompt. False: that cannot be; it has to be typed again.
  bool giveBack(const std::string& text);
  /// In the user's editor, then at the next prompt; where lines are not edited it is sent as it is.
  void edit(std::string text);
  /// Now and then while a reply runs, and after one: what was typed waits for the next prompt, and is not sent but
  /// shown there if the reply was stopped.
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
