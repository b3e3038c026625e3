// What somebody does at a terminal, key by key, from the bytes that the terminal sends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

struct Key {
  enum class Kind {
    kCharacter,  ///< `character`, control characters among them
    kEnter,
    kNewLine,  ///< Ctrl-J, Alt-Enter, or Shift-Enter where terminals tell it apart
    kPaste,    ///< `text`, made harmless
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
    kRedraw,     ///< the terminal was resized, or the program was stopped and goes on
    kNone,       ///< the input has ended
  };
  Kind kind = Kind::kNone;
  char32_t character = 0;
  std::string text;
  /// After kEnter: there is more already, as in a paste that is not marked as one. After kRedraw: the program was
  /// stopped.
  bool more = false;
};

/// Text from a clipboard: line ends are "\n"; escape sequences and control characters but line feeds and tabs are
/// gone.
std::string harmless(std::string_view pasted);

class KeyReader {
 public:
  Key next();
  /// Takes what has been typed so far; next() gives it later.
  void takeTypedAhead();
  /// Enter in what was typed ahead begins a new line: nothing of it is sent before it was seen.
  void holdTypedAhead();
  bool typedAhead() const { return typed_ahead_ > 0; }

 private:
  /// The next byte, or -1 when none comes within the time (-1: wait), and `why` (if any) tells what came instead.
  int byte(int milliseconds, Key::Kind* why = nullptr);
  Key escape();
  Key control(char introducer);
  Key paste();
  Key character(unsigned char lead);

  std::string pending_;
  size_t at_ = 0;           ///< of the next byte in pending_
  size_t typed_ahead_ = 0;  ///< bytes of pending_ that were typed before the prompt was there
  bool marks_pastes_ = false;
  bool ended_ = false;
  bool stopped_ = false;
};

}  // namespace cli
