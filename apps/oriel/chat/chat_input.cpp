#include "chat/chat_input.h"

#include <algorithm>

#include "chat/chat_line.h"
#include "chat/completion.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

/// What Linux's terminals pass on of a line; the rest is lost.
constexpr size_t kTerminalLineBytes = 4095;

size_t longestLine(const std::string& text) {
  size_t longest = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

bool isCommand(const std::string& line) {
  return parseChatLine(line).kind == ChatLine::Kind::kCommand;
}

}  // namespace

ChatInput::ChatInput() : interactive_(isTerminal(Stream::kIn)), editor_(LineEditor::open()) {
  if (editor_ != nullptr) {
    editor_->stands_alone = isCommand;
    editor_->complete = completeChatLine;
  }
}

void ChatInput::setPrompt(const std::string& prompt) {
  prompt_ = prompt;
  if (editor_ != nullptr) {
    editor_->prompt = prompt;
  }
}

ChatInput::Result ChatInput::next(bool shows_prompt, std::string* text) {
  if (editor_ != nullptr) {
    clearInterrupts();
    switch (editor_->next(text)) {
      case LineEditor::Result::kText:
        return Result::kText;
      case LineEditor::Result::kEnd:
        return Result::kEnd;
      case LineEditor::Result::kInterrupted:
        return Result::kInterrupted;
      case LineEditor::Result::kDropped:
        break;
    }
    return Result::kDropped;
  }
  for (;;) {
    const bool typed = interactive_ && !reader_.waits();
    if (shows_prompt) {
      tell(bold(prompt_));
    }
    if (interactive_) {
      clearInterrupts();
    }
    switch (typed ? reader_.nextTyped(text, isCommand) : reader_.next(text)) {
      case LineReader::Result::kEnd:
        tell(shows_prompt ? "\n" : "");
        return Result::kEnd;
      case LineReader::Result::kInterrupted:
        tell(shows_prompt ? "\n" : "");
        return Result::kInterrupted;
      case LineReader::Result::kLine:
        break;
    }
    if (!interactive_ || longestLine(*text) < kTerminalLineBytes) {
      return Result::kText;
    }
    tell("oriel: the terminal cuts lines after " + std::to_string(kTerminalLineBytes) +
         " bytes: send the message in parts, or through a pipe\n");
  }
}

bool ChatInput::giveBack(const std::string& text) {
  if (editor_ != nullptr) {
    editor_->giveBack(text);
  }
  return editor_ != nullptr;
}

void ChatInput::takeTypedAhead() {
  if (editor_ != nullptr) {
    editor_->takeTypedAhead();
  }
}

void ChatInput::replyEnded(bool stopped) {
  if (editor_ == nullptr) {
    return;
  }
  if (stopped) {
    clearInterrupts();
  }
  editor_->takeTypedAhead();
  if (stopped) {
    editor_->holdTypedAhead();
  }
}

}  // namespace cli
