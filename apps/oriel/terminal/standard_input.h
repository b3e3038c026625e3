// Reads stdin of any kind; Ctrl-C ends the wait.
#pragma once

#include <cstddef>
#include <string>

namespace cli {

/// Pasted lines arrive closer together than this, even remotely; typed ones do not.
constexpr int kPasteMs = 30;

/// Bytes read (0 at the end of the input), or -1: interrupted or failed, see errno.
long readStdin(char* buffer, size_t capacity);
/// True if stdin is readable within the time. Terminals deliver whole lines only.
bool stdinWaits(int milliseconds);
/// The unfinished line in the terminal's buffer, which is then no longer editable.
std::string takeUnfinishedLine();

}  // namespace cli
