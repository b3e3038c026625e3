// Messages for the user, all on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "system.h"

namespace cli {

/// Prints to stderr at once, on a terminal like writeShown().
void tell(std::string_view text) noexcept;

/// True if stderr is a terminal with escape sequences: TERM is not dumb.
bool takesEscapes();

/// True if output there may be styled: a terminal with escape sequences, without NO_COLOR.
bool takesStyles(Stream stream);
/// True if bars and bullets are drawn: not on dumb terminals, which may be read aloud, and not without UTF-8.
bool drawsBlocks();

/// `text` in a weaker or stronger style, if stderr takes escape sequences and NO_COLOR is unset.
std::string dim(const std::string& text);
std::string bold(const std::string& text);

/// `share` (0 to 1) of `columns` cells, in eighths of a cell. Any share above zero is visible. Empty unless
/// drawsBlocks().
std::string bar(double share, unsigned columns);

/// Removes control characters except line feed and tab, so that a model's text cannot drive the terminal. Invalid UTF-8
/// becomes U+FFFD.
std::string terminalSafe(std::string_view text);

/// The same without line feeds and tabs: file names and contents must not start new rows.
std::string oneLine(std::string_view text);

enum class ProgressUnit { kShare, kBytes, kTokens, kLines };

/// One line that is redrawn: share, amount, rate and remaining time. Draws nothing unless stderr takes escape sequences,
/// and nothing for short work.
class ProgressBar {
 public:
  /// Shows nothing before `quiet` has passed.
  explicit ProgressBar(std::string label,
                       std::chrono::milliseconds quiet = std::chrono::milliseconds(300),
                       ProgressUnit unit = ProgressUnit::kShare);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// `total` 0: unknown.
  void show(uint64_t done, uint64_t total);
  void clear();

 private:
  std::string label_;
  ProgressUnit unit_;
  std::chrono::milliseconds quiet_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point shown_at_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Terminal modes for reading single keys, and their restoration: also when the program is stopped (Ctrl-Z) or killed by
// a signal. POSIX only; elsewhere no-ops.

/// Delivers keys one by one without echo; Ctrl-C keeps typed input; pastes are marked ("bracketed"). False: stdin is not
/// a suitable terminal.
bool takeTerminal();
/// Restores the modes. Safe in a signal handler. False if they were not taken.
bool leaveTerminal();

/// Restores takeTerminal()'s modes after another program changed them.
void quietTerminal();
/// Records the current modes while a line is being edited: until quietTerminal(), resuming after Ctrl-Z restores them.
void keepEditingModes();

/// True if the terminal was resized or the program was stopped since the last call; wakeReader() was called for it.
bool terminalResized();
bool terminalResumed();

// Reads stdin of any kind; Ctrl-C ends the wait.

/// Pasted lines arrive closer together than this, even remotely; typed ones do not.
constexpr int kPasteMs = 30;

/// Bytes read (0 at the end of the input), or -1: interrupted or failed, see errno.
long readStdin(char* buffer, size_t capacity);
/// True if stdin is readable within the time. Terminals deliver whole lines only.
bool stdinWaits(int milliseconds);
/// The unfinished line in the terminal's buffer, which is then no longer editable.
std::string takeUnfinishedLine();

}  // namespace cli
