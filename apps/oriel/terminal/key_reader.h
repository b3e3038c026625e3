// Converts the terminal's bytes to keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

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

}  // namespace cli
