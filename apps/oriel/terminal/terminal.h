// Messages for the user, all on stderr.
#pragma once

#include <chrono>
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

}  // namespace cli
