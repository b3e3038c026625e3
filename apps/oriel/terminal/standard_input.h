// Reading stdin, whatever it is, so that Ctrl-C ends a wait for it.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

/// Pasted lines come closer than this, also from afar; those that somebody types do not.
constexpr int kPasteMs = 30;

/// Bytes read (0 at the end of the input), or -1: interrupted or failed, which errno tells.
long readStdin(char* buffer, size_t capacity);
/// Whether stdin has something to read, or gets it within the time. Terminals have whole lines only.
bool stdinWaits(int milliseconds);
/// What a terminal on stdin has of a line that is not ended yet: it can no longer be edited.
std::string takeUnfinishedLine();

}  // namespace cli
