// Edits messages at a terminal: multi-line, with a history.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cli {

/// Completions before the cursor: the text from byte `from` is a prefix of each word. A word that ends in "/" may
/// continue.
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
    kDropped,      ///< Ctrl-C on a non-empty line, which goes to the history
    kEdit,         ///< Ctrl-X Ctrl-E: open the text in an editor
  };

  /// Takes the terminal until destroyed. Null if lines cannot be edited: stdin or stderr is not a terminal, TERM is
  /// dumb, the library is missing, or the locale is not UTF-8. Call before other threads start: it sets the process's
  /// character type.
  static std::unique_ptr<LineEditor> open();

  LineEditor() = default;
  virtual ~LineEditor() = default;
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  virtual Result next(std::string* text) = 0;
  /// Puts the text at the next prompt.
  virtual void giveBack(const std::string& text) = 0;
  /// Call during a reply: buffers typed input so that the terminal's own buffer does not overflow.
  virtual void takeTypedAhead() = 0;
  /// Keeps typed input at the next prompt unsent, even lines ended by Enter.
  virtual void holdTypedAhead() = 0;

  /// Shown before the input; includes its spaces, no control characters.
  std::string prompt = "> ";
  /// The history for Up, oldest first; `remembered` is called for each new text.
  virtual void setHistory(const std::vector<std::string>& texts) = 0;
  std::function<void(const std::string&)> remembered;
  /// True for a line that is sent even if more input follows at once: commands.
  std::function<bool(const std::string&)> stands_alone;
  /// Completes the text before the cursor, for Tab.
  std::function<Completion(const std::string&)> complete;
};

}  // namespace cli
