// Lines from stdin, one at a time, with Ctrl-C in between.
#pragma once

#include <string>

namespace cli {

class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  /// `line` without its line ending. After kInterrupted what had been read of the line is dropped.
  Result next(std::string* line);

 private:
  std::string pending_;
  bool at_end_ = false;
};

}  // namespace cli
