// Lines from stdin, one at a time, with Ctrl-C in between.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

/// More than this is no line that somebody wrote.
constexpr size_t kMostLineBytes = 64 << 20;

class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  /// `line` without its line ending. Throws Failure for one of more than kMostLineBytes. After kInterrupted what had been read of the line is dropped.
  Result next(std::string* line);
  /// At a terminal: as next(), with the lines that come together with the line, which is what a text does that is
  /// pasted. If its last line is not ended that is waited for. Lines that `stands_alone` come by themselves.
  Result nextTyped(std::string* text, bool (*stands_alone)(const std::string&));
  /// Whether there is more already. Asked before a prompt: lines that were typed ahead.
  bool waits() const;

 private:
  std::string pending_;
  bool at_end_ = false;
};

}  // namespace cli
