#include "chat/chat_input.h"

#include <algorithm>

#include "chat/chat_line.h"
#include "chat/completion.h"
#include "chat/external_editor.h"
#include "chat/input_history.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

namespace cli {
namespace {

/// Linux terminals truncate longer lines.
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

/// Shows the prompt on stdout if stderr is redirected to a file.
void showPrompt(const std::string& prompt) {
  isTerminal(Stream::kErr) || !isTerminal(Stream::kOut) ? tell(bold(prompt)) : print(prompt);
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
      case LineEditor::Result::kEdit:
        edit(*text);
        return Result::kDropped;
      case LineEditor::Result::kDropped:
        break;
    }
    return Result::kDropped;
  }
  if (!waiting_.empty()) {
    text->swap(waiting_);
    waiting_.clear();
    return Result::kText;
  }
  for (;;) {
    const bool typed = interactive_ && !reader_.waits();
    if (shows_prompt) {
      showPrompt(prompt_);
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

void ChatInput::edit(std::string text) {
  const std::string why_not = editElsewhere(&text);
  if (!why_not.empty()) {
    tellText("oriel: " + oneLine(why_not) + "\n");
  }
  if (!text.empty() && !giveBack(text)) {
    waiting_ = text;
  }
}

void ChatInput::keepHistory(const std::string& file) {
  if (editor_ == nullptr) {
    return;
  }
  auto lines = std::make_shared<std::vector<std::string>>(readHistory(file));
  editor_->setHistory(*lines);
  editor_->remembered = [lines, file](const std::string& text) {
    lines->push_back(text);
    if (!writeHistory(file, lines.get())) {
      tellText("oriel: the history cannot be kept in " + oneLine(file) + "\n");
    }
  };
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
