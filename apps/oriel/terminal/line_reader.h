// Reads lines from stdin, interruptible by Ctrl-C.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

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

}  // namespace cli
