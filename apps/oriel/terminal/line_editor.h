// A message that is typed at a terminal: edited in place, of several lines, with a history.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cli {

/// What a text before the cursor may become: from byte `from` on one of the words, each of which begins with what stands
/// there. A word that ends in "/" may go on.
struct Completion {
  size_t from = 0;
  std::vector<std::string> words;
};

class LineEditor {
 public:
  enum class Result {
    kText,
    kEnd,          ///< Ctrl-D on an empty line, or the terminal is gone
    kInterrupted,  ///< Ctrl-C on an empty line
    kDropped,      ///< Ctrl-C on one that was not: the history has it
    kEdit,         ///< Ctrl-X Ctrl-E: the text goes to an editor
  };

  /// Takes the terminal until it is destroyed. Null where there is none that lines could be edited on (stdin or
  /// stderr is something else, TERM is dumb), the library for it is missing, or the system has no UTF-8 locale.
  /// Before any other thread: it sets the process's character type.
  static std::unique_ptr<LineEditor> open();

  LineEditor() = default;
  virtual ~LineEditor() = default;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  virtual Result next(std::string* text) = 0;
  /// To be edited at the next prompt.
  virtual void giveBack(const std::string& text) = 0;
  /// Takes what was typed since, so that the terminal's own memory for it never overflows: while a reply runs.
  virtual void takeTypedAhead() = 0;
  /// What was typed ahead stands at the next prompt and is not sent, not even lines that Enter ended.
  virtual void holdTypedAhead() = 0;

  /// In front of what is typed; columns and all, no control characters.
  std::string prompt = "> ";
  /// What Up brings back, oldest first; `remembered` is told of each text that comes to it.
  virtual void setHistory(const std::vector<std::string>& texts) = 0;
  std::function<void(const std::string&)> remembered;
  /// Whether a line may be sent although more follows at once: commands.
  std::function<bool(const std::string&)> stands_alone;
  /// Of the text before the cursor, for Tab.
  std::function<Completion(const std::string&)> complete;
};

}  // namespace cli
