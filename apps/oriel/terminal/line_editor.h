// Input at a terminal: keys, edited messages, and plain lines.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#ifdef ORIEL_LINE_EDITOR
#include <histedit.h>
#endif

namespace cli {

// Converts the terminal's bytes to keys.

struct Key {
  enum class Kind {
    kCharacter,  ///< `character`, including control characters
    kEnter,
    kNewLine,  ///< Ctrl-J, Alt-Enter, or Shift-Enter where the terminal distinguishes it
    kPaste,    ///< `text`, sanitised
    kUp,
    kDown,
    kLeft,
    kRight,
    kWordLeft,
    kWordRight,
    kHome,
    kEnd,
    kDelete,
    kAlt,        ///< with `character`
    kInterrupt,  ///< Ctrl-C
    kRedraw,     ///< the terminal was resized, or the program continued after a stop
    kNone,       ///< the input has ended
  };
  Kind kind = Kind::kNone;
  char32_t character = 0;
  std::string text;
  /// After kEnter: more input follows at once, as in an unmarked paste. After kRedraw: the program was stopped.
  bool more = false;
};

/// Clipboard text with "
/// " line ends, without escape sequences and control characters except line feeds and tabs.
std::string harmless(std::string_view pasted);

class KeyReader {
 public:
  Key next();
  /// Buffers the typed input for next().
  void takeTypedAhead();
  /// Enter in buffered input inserts a new line: nothing is sent before the user has seen it.
  void holdTypedAhead();
  bool typedAhead() const { return typed_ahead_ > 0; }

 private:
  /// The next byte; -1 on timeout (-1: no timeout), with the event in `why` if there is one.
  int byte(int milliseconds, Key::Kind* why = nullptr);
  Key escape();
  Key control(char introducer);
  Key paste();
  Key character(unsigned char lead);

  std::string pending_;
  size_t at_ = 0;           ///< index of the next byte in pending_
  size_t typed_ahead_ = 0;  ///< bytes of pending_ typed before the prompt appeared
  bool marks_pastes_ = false;
  bool ended_ = false;
  bool stopped_ = false;
};

// Edits messages at a terminal: multi-line, with a history.

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

#ifdef ORIEL_LINE_EDITOR
// The BSD line editor, loaded on demand: the program also runs without it.

/// Its functions, as described by <histedit.h>.
struct Libedit {
  decltype(&::el_init) init = nullptr;
  decltype(&::el_end) end = nullptr;
  decltype(&::el_wset) set = nullptr;
  decltype(&::el_wgets) gets = nullptr;
  decltype(&::el_wline) line = nullptr;
  decltype(&::el_winsertstr) insert = nullptr;
  decltype(&::el_deletestr) erase = nullptr;
  decltype(&::el_cursor) move = nullptr;
  decltype(&::el_resize) resize = nullptr;

  /// False: not installed.
  bool load();
};

/// libedit decodes characters by the locale: selects a UTF-8 locale for character types only; numbers are unaffected.
/// False: none.
bool useUtf8();
#endif

// Reads lines from stdin, interruptible by Ctrl-C.

/// Longer lines are an error.
constexpr size_t kMostLineBytes = 64 << 20;

class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  /// `line` without its line ending. Throws Failure above kMostLineBytes. kInterrupted drops a partly read line.
  Result next(std::string* line);
  /// At a terminal: like next(), joined with lines that arrive at the same time, as in a paste. Waits for the end of the
  /// last line. Lines that `stands_alone` accepts are returned separately.
  Result nextTyped(std::string* text, bool (*stands_alone)(const std::string&));
  /// True if more input is available. Ask before a prompt: detects lines typed ahead.
  bool waits() const;

 private:
  std::string pending_;
  bool at_end_ = false;
};

// The terminal's clipboard, also over a remote connection (OSC 52).

/// Terminals drop larger texts.
constexpr size_t kMostCopiedBytes = 74 << 10;

/// False: the terminal takes no escape sequences, or the text is too long.
bool copyToClipboard(const std::string& text);

}  // namespace cli
