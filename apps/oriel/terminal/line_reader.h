// The BSD line editor, loaded on demand: the program also runs without it.
#pragma once

#include <histedit.h>
#include <cstddef>
#include <string>

namespace cli {

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
