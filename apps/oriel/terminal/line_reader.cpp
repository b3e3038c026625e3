#include "terminal/line_reader.h"

#include <cerrno>
#include <cstring>

#include "failure.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/standard_input.h"

namespace cli {
namespace {

void checkLine(const std::string& line) {
  if (line.size() > kMostLineBytes) {
    throw Failure{kExitFailed, "stdin has a line of more than " + formatSize(kMostLineBytes) +
                                   ": give it in parts"};
  }
}

}  // namespace

LineReader::Result LineReader::next(std::string* line) {
  char buffer[4096];
  size_t searched = 0;
  for (;;) {
    const size_t end = pending_.find('\n', searched);
    if (end != std::string::npos || (at_end_ && !pending_.empty())) {
      *line = pending_.substr(0, end);
      pending_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line->empty() && line->back() == '\r') {
        line->pop_back();
      }
      return Result::kLine;
    }
    if (at_end_) {
      return Result::kEnd;
    }
    checkLine(pending_);
    searched = pending_.size();
    const long count = readStdin(buffer, sizeof(buffer));
    if (count > 0) {
      pending_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      at_end_ = true;
    } else if (errno == EINTR) {
      if (interrupts() != 0) {
        pending_.clear();
        return Result::kInterrupted;
      }
    } else {
      throw Failure{kExitFailed, std::string("stdin cannot be read (") + std::strerror(errno) +
                                     "): check where the input comes from"};
    }
  }
}

bool LineReader::waits() const { return !pending_.empty() || stdinWaits(0); }

LineReader::Result LineReader::nextTyped(std::string* text,
                                         bool (*stands_alone)(const std::string&)) {
  Result result = next(text);
  if (result != Result::kLine || stands_alone(*text)) {
    return result;
  }
  const auto join = [&] {
    std::string line;
    result = next(&line);
    *text += result == Result::kLine ? "\n" + line : "";
    checkLine(*text);
  };
  while (result == Result::kLine && stdinWaits(kPasteMs)) {
    join();
  }
  if (result == Result::kLine) {
    pending_ += takeUnfinishedLine();
    if (!pending_.empty()) {
      join();
    }
  }
  text->erase(text->find_last_not_of('\n') + 1);
  return result == Result::kEnd ? Result::kLine : result;  // the end is reported by the next call
}

}  // namespace cli
